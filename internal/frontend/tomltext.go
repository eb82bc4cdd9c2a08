// SPDX-License-Identifier: Apache-2.0

package frontend

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// tableHeader is a table's name as it stands in brackets.
func tableHeader(keys []string) string {
	parts := make([]string, len(keys))
	for i, key := range keys {
		parts[i] = key
		if strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" {
			parts[i] = tomlString(key)
		}
	}
	return strings.Join(parts, ".")
}

// tableText is a table of texts, truth values and lists of texts.
func tableText(header string, values map[string]any) string {
	var out strings.Builder
	fmt.Fprintf(&out, "[%s]\n", header)
	for _, key := range slices.Sorted(maps.Keys(values)) {
		switch value := values[key].(type) {
		case string:
			fmt.Fprintf(&out, "%s = %s\n", key, tomlString(value))
		case bool:
			fmt.Fprintf(&out, "%s = %t\n", key, value)
		case []any:
			var items []string
			for _, item := range value {
				items = append(items, tomlString(item.(string)))
			}
			fmt.Fprintf(&out, "%s = [%s]\n", key, strings.Join(items, ", "))
		}
	}
	return out.String()
}

// tomlString is a basic string: its escapes are those of JSON's ASCII.
func tomlString(text string) string {
	quoted, _ := json.Marshal(text) // a string always encodes
	return string(quoted)
}

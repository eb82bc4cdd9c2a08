// SPDX-License-Identifier: Apache-2.0

package agentfiles

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/actplane/actplane/internal/bundle"
)

// serverName is what agents call ActPlane's server of the Model Context Protocol.
const serverName = "actplane"

// WithMCP is the agent with what makes it start the server, too; false: it has no place
// for that which holds for all users of a machine, as far as is known.
func (a Agent) WithMCP() (Agent, bool) {
	if a.server == nil {
		return a, false
	}
	a.Files = slices.Clone(a.Files)
	if i := slices.IndexFunc(a.Files, func(f File) bool { return f.Path == a.server.Path }); i >= 0 {
		a.Files[i] = a.Files[i].and(*a.server)
	} else {
		a.Files = append(a.Files, *a.server)
	}
	return a, true
}

// and is one file with the content of two.
func (f File) and(other File) File {
	both := func(one, two func([]byte) ([]byte, error)) func([]byte) ([]byte, error) {
		return func(old []byte) ([]byte, error) {
			content, err := one(old)
			if err != nil || content == nil {
				return content, err
			}
			return two(content)
		}
	}
	return File{Path: f.Path, Executable: f.Executable, set: both(f.set, other.set), unset: both(f.unset, other.unset)}
}

// serverOf is a JSON file that lists servers below a key.
func serverOf(path, key string, definition map[string]any) *File {
	file := edited(path, func(root bundle.Object) error {
		return root.Update(key, func(servers bundle.Object) error {
			if servers[serverName] != nil {
				return fmt.Errorf("%s has another server that is called %s; give that another name", key, serverName)
			}
			return servers.Set(serverName, definition)
		})
	}, func(root bundle.Object) error { return dropServer(root, key) })
	return &file
}

// dropServer takes our server out, and the list if no other is in it.
func dropServer(root bundle.Object, key string) error {
	var servers bundle.Object
	if found, err := root.Get(key, &servers); err != nil || !found || !isServer(servers[serverName]) {
		return err
	}
	delete(servers, serverName)
	if len(servers) == 0 {
		delete(root, key)
		return nil
	}
	return root.Set(key, servers)
}

// isServer tells whether a server's definition runs the guest program, whatever the form.
func isServer(definition json.RawMessage) bool {
	return definition != nil && strings.Contains(string(definition), `"`+Guest+`"`)
}

// stdio is the form of Claude Code, Gemini CLI and Qwen Code.
func stdio() map[string]any { return map[string]any{"command": Guest, "args": []string{"mcp"}} }

// codexServer is Codex's configuration for all users, with the server.
func codexServer(path string) *File {
	file := tomlFile(path, func(root table) error {
		if err := dropCodexServer(root); err != nil {
			return err
		}
		servers, err := child(root, "mcp_servers")
		if err != nil {
			return err
		}
		if servers[serverName] != nil {
			return fmt.Errorf("mcp_servers has another server that is called %s; give that another name", serverName)
		}
		servers[serverName] = table{"command": Guest, "args": []any{"mcp"}}
		root["mcp_servers"] = servers
		return nil
	}, dropCodexServer)
	return &file
}

func dropCodexServer(root table) error {
	servers, err := child(root, "mcp_servers")
	if err != nil {
		return err
	}
	if server, ok := servers[serverName].(table); ok && server["command"] == Guest {
		if delete(servers, serverName); len(servers) == 0 {
			delete(root, "mcp_servers")
		}
	}
	return nil
}

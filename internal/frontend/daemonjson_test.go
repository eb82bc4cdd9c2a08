// SPDX-License-Identifier: Apache-2.0

package frontend

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestAddRuntime(t *testing.T) {
	const path = "/usr/local/bin/actplane-runtime"
	const entry = `"actplane": {
            "path": "/usr/local/bin/actplane-runtime"
        }`
	for _, test := range []struct{ name, text, want string }{
		{"nothing", "", "{\n    \"runtimes\": {\n        " + entry + "\n    }\n}\n"},
		{"empty object", "{}\n", "{\n    \"runtimes\": {\n        " + entry + "\n    }\n}\n"},
		{"compact", `{"a":1e3}`, `{"a":1e3,"runtimes":{"actplane":{"path":"` + path + `"}}}`},
		{"tabs", "{\n\t\"a\": 12345678901234567890,\n\t\"b\": [1,\n 2]\n}",
			"{\n\t\"a\": 12345678901234567890,\n\t\"b\": [1,\n 2],\n\t\"runtimes\": {\n\t\t\"actplane\": {\n\t\t\t\"path\": \"" + path + "\"\n\t\t}\n\t}\n}"},
		{"other runtimes", "{\n  \"runtimes\": {\n    \"nvidia\": {\"path\": \"n\", \"runtimeArgs\": []}\n  },\n  \"z\": \"}\\\"{\"\n}\n",
			"{\n  \"runtimes\": {\n    \"nvidia\": {\"path\": \"n\", \"runtimeArgs\": []},\n    \"actplane\": {\n      \"path\": \"" + path + "\"\n    }\n  },\n  \"z\": \"}\\\"{\"\n}\n"},
		{"empty runtimes", "{\n  \"runtimes\": {},\n  \"z\": null\n}\n",
			"{\n  \"runtimes\": {\n    \"actplane\": {\n      \"path\": \"" + path + "\"\n    }\n  },\n  \"z\": null\n}\n"},
		{"there already", `{"runtimes":{"actplane":{"path":"` + path + `","runtimeArgs":["--x"]}}}`,
			`{"runtimes":{"actplane":{"path":"` + path + `","runtimeArgs":["--x"]}}}`},
		{"moved", `{"runtimes":{"actplane":{"path" : "/opt/actplane-runtime" ,"x":1}}}`,
			`{"runtimes":{"actplane":{"path" : "` + path + `" ,"x":1}}}`},
		{"mark and line ends", "\xef\xbb\xbf{\r\n  \"a\": 1\r\n}\r\n",
			"\xef\xbb\xbf{\r\n  \"a\": 1,\r\n  \"runtimes\": {\r\n    \"actplane\": {\r\n      \"path\": \"" + path + "\"\r\n    }\r\n  }\r\n}\r\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := addRuntime([]byte(test.text), path)
			if err != nil || string(got) != test.want {
				t.Fatalf("got %v\n%s\nwant\n%s", err, got, test.want)
			}
			again, err := addRuntime(got, path)
			if err != nil || string(again) != string(got) {
				t.Errorf("a second time: %v\n%s", err, again)
			}
			back, err := removeRuntime(got)
			if err != nil || strings.Contains(string(back), "actplane") {
				t.Errorf("removed: %v\n%s", err, back)
			}
			switch test.name {
			case "compact", "tabs", "other runtimes", "mark and line ends":
				if string(back) != test.text {
					t.Errorf("removed is not what was there:\n%s", back)
				}
			}
		})
	}
}

func TestRuntimeRefused(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"{\n  \"a\": 1,\n}", "3:1: invalid character '}'"},
		{"{\n  // note\n}", "2:3: invalid character '/'"},
		{"[]", "the document is not a JSON object"},
		{`{"runtimes":[]}`, `"runtimes" is not a JSON object`},
		{`{"runtimes":{},"runtimes":{}}`, `has the key "runtimes" twice, the second at 1:16`},
		{`{"runtimes":{"actplane":{"path":"/usr/bin/other"}}}`, "is not ActPlane's"},
		{`{"a":1} {"b":2}`, "1:9: invalid character '{' after top-level value"},
	} {
		got, err := addRuntime([]byte(test.text), "/x/actplane-runtime")
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %s, %v; want %q", test.text, got, err, test.want)
		}
	}
	_, err := removeRuntime([]byte(`{"default-runtime":"actplane","runtimes":{"actplane":{"path":"/b/actplane-runtime"}}}`))
	if err == nil || !strings.Contains(err.Error(), "default-runtime") {
		t.Errorf("removing the default runtime: %v", err)
	}
	foreign := `{"runtimes":{"actplane":{"path":"/usr/bin/other"}}}`
	if got, err := removeRuntime([]byte(foreign)); err != nil || string(got) != foreign {
		t.Errorf("removing a foreign runtime: %s, %v", got, err)
	}
}

// FuzzRuntime adds and removes the runtime in whatever is JSON: all else stays.
func FuzzRuntime(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":[{"b":"\"}"}],"runtimes":{"r":{"path":"p"}}}`, "{\n \"x\" : 1e5 , \"y\":{}\n}", "\xef\xbb\xbf{}", `{"":0}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := addRuntime(text, "/usr/local/bin/actplane-runtime")
		if err != nil {
			return
		}
		var before, after map[string]any
		if len(strings.TrimSpace(string(text))) > 0 {
			if err := json.Unmarshal(text[firstByte(text):], &before); err != nil {
				t.Fatalf("accepted what is not JSON: %v", err)
			}
		}
		if err := json.Unmarshal(got[firstByte(got):], &after); err != nil {
			t.Fatalf("wrote what is not JSON: %v\n%s", err, got)
		}
		runtimes := after["runtimes"].(map[string]any)
		if runtimes["actplane"].(map[string]any)["path"] != "/usr/local/bin/actplane-runtime" {
			t.Fatalf("the runtime is not in\n%s", got)
		}
		if old, ok := before["runtimes"].(map[string]any); ok {
			if old["actplane"] != nil {
				return
			}
			delete(runtimes, "actplane")
			if !reflect.DeepEqual(old, runtimes) {
				t.Fatalf("runtimes changed:\n%s\n%s", text, got)
			}
		}
		delete(before, "runtimes")
		delete(after, "runtimes")
		if len(before)+len(after) > 0 && !reflect.DeepEqual(before, after) {
			t.Fatalf("other keys changed:\n%s\n%s", text, got)
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package agentfiles

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/actplane/actplane/internal/testenv"
)

// runPlugin runs a plugin in node with a guest of ours, and then what act does with it;
// it returns what that printed. The guest notes its input and prints "told" once.
func runPlugin(t *testing.T, agent, base, act string, withGuest bool) (printed, asked string) {
	t.Helper()
	node := testenv.RequireProgram(t, "node", "nodejs")
	dir := t.TempDir()
	guest := filepath.Join(dir, "guest")
	if withGuest {
		text := "#!/bin/sh\necho \"$* $(cat)\" >> " + dir + "/asked\n[ -e " + dir + "/told ] || echo told\n: > " + dir + "/told\n"
		if err := os.WriteFile(guest, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	source := strings.ReplaceAll(string(mustSet(t, fileOf(t, agent, base), nil)), Guest, guest)
	source = strings.ReplaceAll(source, ": any", "") // its types are for TypeScript
	for name, text := range map[string]string{"plugin.mjs": source, "act.mjs": act} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command(node, filepath.Join(dir, "act.mjs")).CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	log, _ := os.ReadFile(filepath.Join(dir, "asked")) // there is none without a guest
	return string(out), string(log)
}

const actOpenCode = `
import { ActPlane } from "./plugin.mjs";
const hooks = await ActPlane();
const output = { output: "did it" };
await hooks["tool.execute.after"]({ tool: "bash", sessionID: "s" }, output);
console.log(JSON.stringify(output.output));
`

// A tool that failed, seen by two requests: OpenCode makes up the messages each time.
const failOpenCode = `
import { ActPlane } from "./plugin.mjs";
const hooks = await ActPlane();
for (let request = 0; request < 2; request++) {
  const messages = [
    { info: { sessionID: "s" }, parts: [{ type: "text" }] },
    { info: { sessionID: "s" }, parts: [{ type: "tool", callID: "c", state: { status: "error", error: "no" } }, { type: "step-finish" }] },
  ];
  await hooks["experimental.chat.messages.transform"]({}, { messages });
  console.log(JSON.stringify(messages[1].parts[0].state.error));
}
await hooks["experimental.chat.messages.transform"]({}, { messages: [] });
`

const actPi = `
import register from "./plugin.mjs";
let handler;
register({ on: (event, given) => { if (event === "tool_result") handler = given; } });
const event = { content: [{ type: "text", text: "did it" }], isError: true };
for (let n = 0; n < 2; n++)
  console.log(JSON.stringify(await handler(event, { sessionManager: { getSessionId: () => "s" } }) ?? null));
`

func TestPlugins(t *testing.T) {
	tests := []struct{ name, agent, base, act, printed, asked, silent string }{
		{"OpenCode's tool", "opencode", "actplane.js", actOpenCode, `"did it\ntold"` + "\n",
			`hook --agent opencode {"sessionID":"s"}` + "\n", `"did it"` + "\n"},
		{"OpenCode's failed tool", "opencode", "actplane.js", failOpenCode, `"no\ntold"` + "\n" + `"no\ntold"` + "\n",
			`hook --agent opencode {"sessionID":"s","failed":true}` + "\n", `"no"` + "\n" + `"no"` + "\n"},
		{"pi's tool", "pi", "actplane.ts", actPi, `{"content":[{"type":"text","text":"did it"},{"type":"text","text":"told"}]}` + "\nnull\n",
			strings.Repeat(`hook --agent pi {"session_id":"s","failed":true}`+"\n", 2), "null\nnull\n"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			printed, asked := runPlugin(t, test.agent, test.base, test.act, true)
			if printed != test.printed || asked != test.asked {
				t.Errorf("printed %s, and asked %s", printed, asked)
			}
			if printed, _ := runPlugin(t, test.agent, test.base, test.act, false); printed != test.silent {
				t.Errorf("without a guest it printed %s", printed)
			}
		})
	}
}

// Written by actplane-guest setup. It tells the model what the policy of this
// container refused, and why; it decides nothing.
import { spawn } from "node:child_process";

// ask resolves to what happened since the last time, and to "" on any trouble.
function ask(event) {
  return new Promise((resolve) => {
    let text = "";
    try {
      const child = spawn("/run/actplane/bin/actplane-guest", ["hook", "--agent", "pi"], { stdio: ["pipe", "pipe", "ignore"] });
      child.on("error", () => resolve(""));
      child.on("close", () => resolve(text.trim()));
      child.stdin.on("error", () => {});
      child.stdout.on("data", (data) => (text += data));
      child.stdin.end(JSON.stringify(event));
    } catch {
      resolve("");
    }
  });
}

export default function (pi: any) {
  pi.on("tool_result", async (event: any, context: any) => {
    const text = await ask({ session_id: context?.sessionManager?.getSessionId?.(), failed: event.isError === true });
    if (text) return { content: [...event.content, { type: "text", text }] };
  });
}

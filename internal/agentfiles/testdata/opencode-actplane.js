// Written by actplane-guest setup. It tells the model what the policy of this
// container refused, and why; it decides nothing.
import { spawn } from "node:child_process";

// ask resolves to what happened since the last time, and to "" on any trouble.
function ask(event) {
  return new Promise((resolve) => {
    let text = "";
    try {
      const child = spawn("/run/actplane/bin/actplane-guest", ["hook", "--agent", "opencode"], { stdio: ["pipe", "pipe", "ignore"] });
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

export const ActPlane = async () => {
  const told = new Map(); // what stands behind the error of a tool call
  const failed = (part) => part.type === "tool" && part.state?.status === "error";
  return {
    "tool.execute.after": async (input, output) => {
      const text = await ask({ sessionID: input.sessionID });
      if (text && typeof output.output === "string") output.output += "\n" + text;
    },
    // A tool that failed has no event of its own. What is put behind its error is not
    // kept by OpenCode, so that it is put there again each time.
    "experimental.chat.messages.transform": async (_, output) => {
      const last = output.messages.at(-1);
      const fresh = last?.parts.find((part) => failed(part) && !told.has(part.callID));
      if (fresh) {
        const text = await ask({ sessionID: last.info.sessionID, failed: true });
        if (text) told.set(fresh.callID, text);
      }
      for (const message of output.messages)
        for (const part of message.parts)
          if (failed(part) && told.has(part.callID)) part.state.error += "\n" + told.get(part.callID);
    },
  };
};


export default function (pi: any) {
  pi.on("tool_result", async (event: any, context: any) => {
    const text = await ask({ session_id: context?.sessionManager?.getSessionId?.(), failed: event.isError === true });
    if (text) return { content: [...event.content, { type: "text", text }] };
  });
}

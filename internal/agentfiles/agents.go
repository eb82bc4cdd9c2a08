// SPDX-License-Identifier: Apache-2.0

package agentfiles

import (
	_ "embed" // the plugins

	"github.com/actplane/actplane/internal/bundle"
)

// Seconds that a hook may take before its agent goes on without it. It ends by itself
// well before that.
const timeout = 5

var (
	//go:embed files/ask.js
	askSource string
	//go:embed files/opencode.js
	openCodeSource string
	//go:embed files/pi.ts
	piSource string
)

// Agents are all that can be set up.
func Agents() []Agent {
	return []Agent{
		{
			Name: "claude", Programs: []string{"claude"}, Folder: "/etc/claude-code",
			Files: []File{grouped("managed-settings.json", "claude", timeout,
				[]string{"PostToolUse", "PostToolUseFailure", "PostToolBatch", "UserPromptSubmit", "Stop"}, enabledClaude)},
			server: serverOf("managed-mcp.json", "mcpServers", stdio()),
		},
		{
			Name: "codex", Programs: []string{"codex"}, Folder: "/etc/codex",
			Files:  []File{requirements("requirements.toml", []string{"PostToolUse", "UserPromptSubmit", "Stop"})},
			server: codexServer("config.toml"),
		},
		{
			Name: "copilot", Programs: []string{"copilot"}, Folder: "/etc/github-copilot",
			Files: []File{flat("policy.d/50-actplane.json", []string{"postToolUse", "postToolUseFailure", "userPromptSubmitted", "agentStop"},
				map[string]any{"type": "command", "bash": command("copilot"), "timeoutSec": timeout})},
		},
		{
			Name: "gemini", Programs: []string{"gemini"}, Folder: "/etc/gemini-cli",
			Files: []File{grouped("settings.json", "gemini", timeout*1000,
				[]string{"AfterTool", "BeforeAgent", "AfterAgent"}, enabledGemini)},
			server: serverOf("settings.json", "mcpServers", stdio()),
		},
		{
			Name: "qwen", Programs: []string{"qwen"}, Folder: "/etc/qwen-code",
			Files: []File{grouped("settings.json", "qwen", timeout*1000,
				[]string{"PostToolUse", "PostToolUseFailure", "UserPromptSubmit", "Stop"}, enabledQwen)},
			server: serverOf("settings.json", "mcpServers", stdio()),
		},
		{
			Name: "cursor", Programs: []string{"cursor-agent", "cursor"}, Folder: "/etc/cursor",
			Files: []File{flat("hooks.json", []string{"postToolUse", "stop"},
				map[string]any{"command": command("cursor"), "timeout": timeout})},
		},
		{
			Name: "opencode", Programs: []string{"opencode"}, Folder: "/etc/opencode",
			Files: []File{
				plugins("opencode.json", "file:///etc/opencode/actplane.js"),
				whole("actplane.js", script("opencode", openCodeSource), false),
			},
			server: serverOf("opencode.json", "mcp", map[string]any{"type": "local", "command": []string{Guest, "mcp"}, "enabled": true}),
		},
		{
			Name: "cline", Programs: []string{"cline"},
			Files: []File{whole(".cline/hooks/PostToolUse", "#!/bin/sh\n# Written by actplane-guest setup.\n"+command("cline")+"\n", true)},
		},
		{
			Name: "pi", Programs: []string{"pi"},
			Files: []File{whole(".pi/agent/extensions/actplane.ts", script("pi", piSource), false)},
		},
	}
}

// enabledClaude: managed settings cannot be switched off by others, but by themselves.
func enabledClaude(settings bundle.Object, on bool) error {
	if !on {
		return nil
	}
	return refuseTrue(settings, "disableAllHooks")
}

// enabledGemini keeps the user from switching all hooks off.
func enabledGemini(settings bundle.Object, on bool) error {
	err := settings.Update("hooksConfig", func(config bundle.Object) error {
		return setDefault(config, "enabled", true, on)
	})
	if string(settings["hooksConfig"]) == "{}" {
		delete(settings, "hooksConfig")
	}
	return err
}

// enabledQwen: the user's true counts where the system's settings do not say.
func enabledQwen(settings bundle.Object, on bool) error {
	return setDefault(settings, "disableAllHooks", false, on)
}

// setDefault writes out what would hold if nobody said anything, or takes it away.
func setDefault(object bundle.Object, key string, value, written bool) error {
	if written {
		return setUnless(object, key, value)
	}
	delete(object, key)
	return nil
}

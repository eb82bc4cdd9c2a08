#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs in a container without a policy, before the agent: makes /workspace a git
# repository with a remote to push to, /remote, and pushes the first commit. So
# pushing works, and only the policy can be why it does not work for the agent.
set -eu
cd /workspace
cp -R /quickstart/project/. .
echo 'API_TOKEN=this-is-secret' > .env
printf '%s\n' .env actplane.yaml merge-request.md '__pycache__/' > .gitignore
git init -q -b main
git config user.name "Quickstart agent"
git config user.email agent@localhost
git add .
git commit -q -m "Greet"
git init -q --bare -b main /remote
git remote add origin /remote
git push -q -u origin main

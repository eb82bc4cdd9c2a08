#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# templates-inside.sh GROUP [before]: what templates.sh tries in a container that is
# under the policy of a group of templates; with before, what has to be in the working
# directory first.
group=$1

# happens COMMAND..., refused COMMAND...: and whatever its own exit status is.
n=0
happens() { attempt happens "$@"; }
refused() { attempt refused "$@"; }
attempt() {
  local wanted=$1 got=happens output code
  shift
  n=$((n + 1))
  output=$("$@" 2>&1 < /dev/null)
  code=$?
  # 126: bash could not run it; 137: the tier without BPF LSM has killed it.
  if [[ $code = 126 || $code = 137 || $output = *"not permitted"* ]]; then got=refused; fi
  if [ $got = "$wanted" ]; then
    echo "ok $group $n: $*: $got"
  else
    echo "not ok $group $n: $*: $got, with status $code and $(tr '\n' ' ' <<< "$output")"
  fi
}
put() { echo x > "$1"; }
add() { echo x >> "$1"; }
connect() { python3 -c 'import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 1)' "$@"; }
connect_after() { python3 -c 'import socket, sys; open(sys.argv[1]).read(); socket.create_connection((sys.argv[2], int(sys.argv[3])), 1)' "$@"; }

before_chosen() {
  git init -q .
  mkdir -p src .claude/skills
  echo SECRET=1 > .env
  echo SECRET= > .env.example
  echo x > .claude/skills/x
  echo x > CLAUDE.md
  printf 'test:\n\t@true\nfails:\n\t@false\n' > Makefile
}

chosen() {
  git config --global --add safe.directory /workspace
  git config --global user.email a@example.com
  git config --global user.name a
  refused git push origin main
  refused bash -c 'git push'
  refused gh pr merge 12
  happens gh pr view 12
  happens git status
  refused cat .env
  refused mv .env x
  refused ln .env x
  refused add .env
  happens cat .env.example
  happens ln -s .env l
  refused cat l
  happens cat CLAUDE.md
  refused put CLAUDE.md
  refused add CLAUDE.md
  refused mv .claude old
  refused put .claude/settings.json
  refused put .git/hooks/pre-push
  happens put src/x.py
  happens git add src
  refused git commit -q -m x
  happens make -f Makefile fails
  refused git commit -q -m x
  happens make test
  happens git commit -q -m x
  add src/x.py
  refused git commit -q -a -m x
}

before_tests() { mkdir -p src tests; }

# Each gate by itself: the others are open meanwhile.
tests() {
  local open=(go\ test npm\ test pytest cargo\ test) changes=(main.go src/x.ts src/x.py src/x.rs) i run
  refused git commit
  for run in "${open[@]}"; do
    refused git commit
    $run
  done
  happens git commit
  for i in "${!changes[@]}"; do
    put "${changes[$i]}"
    refused git commit
    ${open[$i]}
    happens git commit
  done
  put src/x.ts
  node /usr/bin/npm run build
  refused git commit
  node /usr/bin/npm test
  happens git commit
  add src/x.py
  python3 -m pytest
  refused git commit    # there is no such module, so it has failed
}

before_git() {
  git init -q .
  mkdir -p node_modules
}

git_() {
  git config --global --add safe.directory /workspace
  refused git push --force origin main
  happens git push origin main
  refused git reset --hard
  refused git clean -xdf
  happens git clean -n
  refused git stash drop
  refused rm .git/HEAD
  refused mv .git old
  happens git add -A
  refused npm publish
  refused docker push x
  happens docker build .
  refused npm install x
  refused node /usr/lib/node_modules/npm/bin/npm-cli.js install x
  happens npm ci
  refused pip install x
  refused python3 -m pip install x
  refused put package-lock.json
  refused add "$HOME/.npmrc"
  happens put node_modules/x
}

before_network() { echo SECRET=1 > .env; }

network() {
  refused connect 169.254.169.254 80
  happens connect 169.254.169.254 53
  happens connect 93.184.216.34 443    # there is no network
  refused connect_after .env 93.184.216.34 443
  happens connect_after .env 10.0.0.5 443
  happens connect_after .env 127.0.0.1 8080
  cat .env > copy
  refused connect_after copy 93.184.216.34 443
  refused connect 10.0.0.5 5432
  happens connect 127.0.0.1 5432
  refused put prod.db
  happens put test.db
  happens migrate up
  refused migrate down
}

before_closed() {
  mkdir -p downloads
  printf '#!/bin/sh\n' > downloads/install.sh
  chmod 755 downloads/install.sh
  echo x > downloads/page
}

closed() {
  refused connect 10.0.0.5 443
  refused connect 192.168.1.1 80
  refused connect 169.254.169.254 80
  happens connect 10.0.0.2 53
  happens connect 127.0.0.1 8080
  happens connect 93.184.216.34 443
  refused connect 93.184.216.34 2375
  happens git push
  happens bash -c 'test -e downloads/page'
  refused su -c true
  refused downloads/install.sh
  refused sh downloads/install.sh
  refused python3 ./downloads/install.sh
  refused bash -c 'read -r x < downloads/page; git push; exit'
  refused bash -c 'read -r x < downloads/page; npm publish; exit'
}

before_writes() {
  mkdir -p api gen
  echo x > api/x.pb.go
}

writes() {
  happens put src.txt
  happens put /tmp/x
  happens add /dev/shm/x
  happens put /dev/null
  refused put /etc/x
  refused add /etc/hosts
  refused put "$HOME/.bashrc"
  happens mkdir -p "$HOME/.cache/x"
  refused mv src.txt /usr/src.txt
  happens cat /etc/hosts
  refused put api/x.pb.go
  refused add api/x.pb.go
  refused rm api/x.pb.go
  refused put gen/x
  happens put api/x.proto
  happens protoc x.proto
}

before_docs() {
  mkdir -p docs infra
  git init -q .
}

docs() {
  happens put docs/x.html
  happens put README.md
  refused put main.go
  refused mv README.md README.go
  refused put .git/hooks/pre-commit
  refused put infra/main.tf
  refused terraform apply
  happens terraform plan
  happens terraform apply
  refused terraform apply
  refused kubectl apply -f x
  happens kubectl diff -f x
  happens kubectl apply -f x
  refused kubectl apply -f x
  refused helm upgrade x .
  happens helm template x .
  happens helm upgrade x .
  refused helm uninstall x
}

before_review() { echo x > main.go; }

review() {
  happens cat main.go
  refused put main.go
  refused rm main.go
  refused mv main.go /tmp/main.go
  happens mkdir review
  happens put review/report.md
  happens put /tmp/x
  refused git commit
  happens git status
}

before_allowed() { cp /bin/true tool; }

allowed() {
  happens git --version
  happens bash -c true
  happens npm ci    # a script, and what runs it
  refused ./tool
  happens cp /bin/true /usr/bin/made-here
  refused made-here
  happens cp /bin/true /tmp/made-here
  refused /tmp/made-here
  refused curl --version
  happens put /dev/null
}

before_marks() {
  mkdir -p downloads data/customers
  echo x | tee downloads/page > data/customers/1
}

# What a labelled program prints labels this shell as well, so the order matters.
marks() {
  happens git push
  happens redact data/customers/1 out
  happens connect_after out 93.184.216.34 443
  refused connect_after data/customers/1 93.184.216.34 443
  refused bash -c 'read -r x < downloads/page; git push; exit'
  happens bash -c 'read -r x < downloads/page; review git push; exit'
}

if [ "${2:-}" = before ]; then
  "before_$group"
  exit
fi
case $group in
  git) git_ ;;
  *) "$group" ;;
esac
echo 'done'

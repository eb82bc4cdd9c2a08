// SPDX-License-Identifier: Apache-2.0
//
// As held-go, in Node: files through its pool of threads, programs as children.
'use strict'
const { spawnSync } = require('child_process')
const dgram = require('dgram')
const fs = require('fs/promises')
const net = require('net')

async function step (op, what) {
  const [host, port] = what.split(':')
  switch (op) {
    case 'open':
      return (await fs.open(what)).close()
    case 'unlink':
      return fs.unlink(what)
    case 'connect':
      return new Promise((resolve, reject) => {
        const socket = net.connect({ host, port: Number(port) }, () => { socket.destroy(); resolve() })
        socket.on('error', reject)
      })
    case 'send':
      return new Promise((resolve, reject) => {
        const socket = dgram.createSocket('udp4')
        socket.send('x', Number(port), host, (error) => { socket.close(); error ? reject(error) : resolve() })
      })
  }
  const { error } = spawnSync(what, [], { stdio: 'inherit' })
  if (error) throw error
}

async function main () {
  const busy = setInterval(() => {}, 10)
  const words = process.argv.slice(2)
  for (let i = 0; i + 1 < words.length; i += 2) {
    let outcome = 'ok'
    await step(words[i], words[i + 1]).catch((error) => {
      if (error.code !== 'ECONNREFUSED') outcome = error.code
    })
    // Of a program that ran it is that one's to tell.
    if (words[i] !== 'exec' || outcome !== 'ok') console.log(words[i], outcome)
  }
  clearInterval(busy)
}

main()

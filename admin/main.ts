#!/usr/bin/env node
import { runAdmin } from './run-admin.ts'

/** Returns a signal that the first Ctrl-C aborts. A second Ctrl-C ends the process. */
function untilStopped() {
  const stop = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stop.abort())
  return stop.signal
}

const io = { args: process.argv.slice(2), print: console.log, printError: console.error, untilStopped }
const status = await runAdmin(io)
// Exits explicitly, because the open connection to the core would keep the process running.
process.exit(status)

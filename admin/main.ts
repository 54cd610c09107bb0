#!/usr/bin/env node
import { runAdmin } from './run-admin.ts'

const status = await runAdmin({ args: process.argv.slice(2), print: console.log, printError: console.error })
// Exits explicitly, because the open connection to the core would keep the process running.
process.exit(status)

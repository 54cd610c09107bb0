// `npm run bench -- <part>`: measures one part of the bench (see parts.ts) on this machine. Some
// parts compare the service with similar software, the contenders.
import { rm } from 'node:fs/promises'
import { parseArgs } from 'node:util'
import { stopStarted } from '../test/support/processes.ts'
import { machineFacts } from './machine.ts'
import { parts } from './parts.ts'
import { markdownTable, plainTable } from './table.ts'
import { scratchFolders } from './workspace.ts'

const usage = `npm run bench -- <part> [--rounds n] [--quick | --full] [--only a,b] [--json | --markdown] [--profile folder] [--against folder]
parts: ${Object.keys(parts).join(', ')}`

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: {
      rounds: { type: 'string' },
      quick: { type: 'boolean', default: false },
      full: { type: 'boolean', default: false },
      only: { type: 'string' },
      json: { type: 'boolean', default: false },
      markdown: { type: 'boolean', default: false },
      profile: { type: 'string' },
      against: { type: 'string' },
    },
  })
  const load = parts[positionals[0] ?? '']
  const rounds = Number(values.rounds ?? (values.quick ? 1 : 3))
  if (load === undefined || positionals.length > 1 || !Number.isInteger(rounds) || rounds < 1) {
    console.error(usage)
    process.exitCode = 2
    return
  }
  const part = await load()
  const facts = await machineFacts()
  console.error(facts.map(([name, value]) => `${name}: ${value}`).join('\n'))
  const tables = await part({
    rounds,
    quick: values.quick,
    full: values.full,
    only: values.only?.split(',') ?? [],
    profile: values.profile,
    against: values.against,
    log: (line) => console.error(line),
  })
  if (values.json) console.log(JSON.stringify({ part: positionals[0], machine: Object.fromEntries(facts), tables }))
  else if (values.markdown) {
    console.log([...facts.map(([name, value]) => `- ${name}: ${value}`), '', ...tables.map(markdownTable)].join('\n'))
  } else console.log(tables.map(plainTable).join('\n'))
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void tidyUp().finally(() => process.exit(1)))
}

async function tidyUp(): Promise<void> {
  await stopStarted()
  // Retries, because a stopping database engine may still write to its folder.
  for (const folder of scratchFolders) await rm(folder, { recursive: true, force: true, maxRetries: 10 })
}

try {
  await main()
} catch (error) {
  console.error((error as Error).message)
  process.exitCode = 1
} finally {
  await tidyUp()
}

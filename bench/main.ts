// `npm run bench -- <part>`: measures one part of the bench (see parts.ts) on this machine.
import { readFile } from 'node:fs/promises'
import { cpus, loadavg, release, totalmem } from 'node:os'
import { parseArgs } from 'node:util'
import { stopStarted } from '../test/support/processes.ts'
import { removeScratchFolders } from './measure.ts'
import { parts } from './parts.ts'
import { markdownTable, plainTable } from './table.ts'

const usage = `npm run bench -- <part> [--rounds n] [--quick | --full] [--only a,b] [--json | --markdown] [--profile folder] [--against folder]
${Object.entries(parts)
  .map(([name, [about]]) => `  ${name.padEnd(10)} ${about}`)
  .join('\n')}`

async function machineFacts(): Promise<[name: string, value: string][]> {
  const system = await readFile('/etc/os-release', 'utf8').catch(() => '')
  const name = /^PRETTY_NAME="?([^"\n]*)/m.exec(system)?.[1] ?? process.platform
  return [
    ['processor', `${cpus().length} × ${cpus()[0]?.model.trim() ?? 'unknown'}`],
    ['memory', `${Math.round(totalmem() / 2 ** 30)} GiB`],
    ['system', `${name}, Linux ${release()}`],
    ['Node', process.version],
    ['load before the run', (loadavg()[0] ?? 0).toFixed(2)],
  ]
}

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
  const found = parts[positionals[0] ?? '']
  const rounds = Number(values.rounds ?? (values.quick ? 1 : 3))
  if (found === undefined || positionals.length > 1 || !Number.isInteger(rounds) || rounds < 1) {
    console.error(usage)
    process.exitCode = 2
    return
  }
  const facts = await machineFacts()
  const lines = facts.map(([name, value]) => `${name}: ${value}`)
  console.error(lines.join('\n'))
  const { quick, full, profile, against } = values
  const options = { rounds, quick, full, profile, against, only: values.only?.split(',') ?? [], log: console.error }
  const tables = await (await found[1]()).part(options)
  if (values.json) console.log(JSON.stringify({ part: positionals[0], machine: Object.fromEntries(facts), tables }))
  else if (values.markdown)
    console.log([...lines.map((line) => `- ${line}`), '', ...tables.map(markdownTable)].join('\n'))
  else console.log(tables.map(plainTable).join('\n'))
}

async function tidyUp(): Promise<void> {
  await stopStarted()
  await removeScratchFolders()
}

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void tidyUp().finally(() => process.exit(1)))
}

try {
  await main()
} catch (error) {
  console.error((error as Error).message)
  process.exitCode = 1
} finally {
  await tidyUp()
  // Clients of the database and of cores keep their connections.
  process.exit()
}

// Seeder process: creates sessions and fills conversations by calling the core's code directly.
import { randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { pino } from 'pino'
import { readCoreConfig } from '../../core/config.ts'
import { readDevConfig } from '../../dev/config.ts'
import { startLocalCore } from '../../dev/local-core.ts'
import { clock, handleCommands } from '../commands.ts'
import { runConcurrently } from '../delivery/pacing.ts'
import type { Visitor } from './contender.ts'
import { marker } from './marker.ts'

export type SeedCommand = { do: 'sessions'; count: number } | { do: 'fill'; from: number; count: number; times: number }

const [dataDir = '', visitorsFile = ''] = process.argv.slice(2)
const { siteKey, origin, mongodbUri } = JSON.parse(await readFile(`${dataDir}/demo.json`, 'utf8'))
const config = readCoreConfig({ MONGODB_URI: mongodbUri, GRANT_LIFETIME_SECONDS: '86400' })
const dev = readDevConfig({ DATA_DIR: dataDir })
const { core } = await startLocalCore(config, dev, { logger: pino({ level: 'warn' }) })
const inFlight = 256
/** Index of the next event. Starts above the publisher's indexes, so that indexes are unique. */
let index = 1_000_000_000

async function begin(): Promise<Visitor> {
  const { content } = await core.sessions.create({
    publicSiteKey: siteKey,
    origin,
    clientInstanceId: randomUUID(),
    idempotencyKey: randomUUID(),
  })
  const head = [
    'GET /api/integrations/v1/widget/events HTTP/1.1',
    'Host: 127.0.0.1',
    `Origin: ${origin}`,
    'X-Service-Widget-Version: 1.0',
    'Accept: text/event-stream',
    `Authorization: Bearer ${content.accessGrant}`,
  ]
  return { channel: content.conversationId, head: `${head.join('\r\n')}\r\n` }
}

handleCommands(async (command: SeedCommand) => {
  if (command.do === 'sessions') {
    const visitors: Visitor[] = []
    await runConcurrently(command.count, inFlight, async () => visitors.push(await begin()))
    await writeFile(visitorsFile, JSON.stringify(visitors), { mode: 0o600 })
    return
  }
  const visitors: Visitor[] = JSON.parse(await readFile(visitorsFile, 'utf8'))
  const chosen = visitors.slice(command.from, command.from + command.count)
  await runConcurrently(chosen.length * command.times, 2_000, (turn) => {
    index += 1
    return core.messages.sendAsAgent({
      conversationId: chosen[turn % chosen.length]?.channel ?? '',
      clientOperationId: randomUUID(),
      body: marker(index, clock()).padEnd(256, 'x'),
      agent: { displayName: 'Ada' },
    })
  })
})

// Seeder process: creates sessions by calling the core's code directly.
import { randomUUID } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { pino } from 'pino'
import { readCoreConfig } from '../../core/config.ts'
import { readDevConfig } from '../../dev/config.ts'
import { startLocalCore } from '../../dev/local-core.ts'
import { handleCommands } from '../commands.ts'
import { runConcurrently } from '../delivery/pacing.ts'
import type { Visitor } from './contender.ts'

/** Creates this number of sessions. */
export interface SeedCommand {
  count: number
}

const [dataDir = '', visitorsFile = ''] = process.argv.slice(2)
const { siteKey, origin, mongodbUri } = JSON.parse(await readFile(`${dataDir}/demo.json`, 'utf8'))
const config = readCoreConfig({ MONGODB_URI: mongodbUri, GRANT_LIFETIME_SECONDS: '86400' })
const dev = readDevConfig({ DATA_DIR: dataDir })
const { core } = await startLocalCore(config, dev, { logger: pino({ level: 'warn' }) })
const inFlight = 256

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

handleCommands(async ({ count }: SeedCommand) => {
  const visitors: Visitor[] = []
  await runConcurrently(count, inFlight, async () => visitors.push(await begin()))
  await writeFile(visitorsFile, JSON.stringify(visitors), { mode: 0o600 })
})

// `@durable-streams/server`. Argument: its data folder.
import { handleCommands } from '../commands.ts'
import { streamCount } from './message-stores.ts'
import { requirePeer } from './programs.ts'

const [dataDir = ''] = process.argv.slice(2)
const { DurableStreamTestServer } = requirePeer('@durable-streams/server')
const url = await new DurableStreamTestServer({ host: '127.0.0.1', port: 0, dataDir }).start()
const streams = Array.from({ length: streamCount }, (_, index) => `${url}/streams/${index}`)
const headers = { 'content-type': 'application/json' }
for (const each of streams) await fetch(each, { method: 'PUT', headers })

async function count(): Promise<number> {
  let found = 0
  for (const each of streams) found += ((await (await fetch(each)).json()) as unknown[]).length
  return found
}

handleCommands(async (command: { do: 'port' | 'count' }) =>
  command.do === 'port' ? Number(new URL(url).port) : count(),
)

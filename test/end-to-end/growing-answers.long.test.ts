import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { expect, it } from 'vitest'
import { inheritedEnvironment } from '../support/processes.ts'
import { startStack } from '../support/stack.ts'
import { testDatabase } from '../support/test-database.ts'

const database = testDatabase()

it('each of 1,000 growing answers is exact for a client in Python, although gateways and cores are killed all the time', async () => {
  const env = { RATE_LIMIT_FACTOR: '1000', HEARTBEAT_SECONDS: '1' }
  const { dataDir, demo, gateways, cores } = await startStack({ database, cores: 2, gateways: 2, env })
  const client = spawn('python3', [join(import.meta.dirname, 'growing_answers.py')], {
    env: {
      ...inheritedEnvironment(),
      GATEWAYS: gateways.map(({ url }) => url).join(),
      ORIGIN: demo.origin,
      SITE_KEY: demo.siteKey,
      TOKEN: await readFile(join(dataDir, 'bot.token'), 'utf8'),
      ANSWERS: '1000',
    },
  })
  const output = Promise.all([text(client.stdout), text(client.stderr)])
  let isOver = false
  const ended = once(client, 'exit').finally(() => {
    isOver = true
  })
  const parts = [...cores, ...gateways]
  for (let turn = 0; !isOver; turn += 1) await parts[turn % parts.length]!.killAndRestart()
  await ended
  expect(await output).toEqual(['1000 of 1000 answers are exact\n', ''])
})

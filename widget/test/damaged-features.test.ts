import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { forAllAsync } from '../../test/support/for-all.ts'
import { runs } from '../../test/support/is-long.ts'
import { createClientHarness, until } from './client-harness.ts'
import { serverPerTest } from './server-per-test.ts'

const { clock, restart, server } = serverPerTest()
const key = 'service.widget.1.pk_friendly.features'

const preChat = { fields: [{ name: 'name', label: 'Name', type: 'text', required: false, maxLength: 100 }] }
const config = { capabilities: { preChatForm: true, navigation: true, screenshots: true }, forms: { preChat } }

/** Creates a storage that keeps what each page wrote, as a browser's storage does. */
function createStorage() {
  const items = new Map<string, string>()
  return {
    getItem: (name: string) => items.get(name) ?? null,
    setItem: (name: string, value: string) => void items.set(name, value),
    removeItem: (name: string) => void items.delete(name),
  }
}

const rejections: unknown[] = []
const onRejection = (reason: unknown) => void rejections.push(reason)
beforeEach(async () => {
  rejections.length = 0
  process.on('unhandledRejection', onRejection)
  await restart(config)
})
afterEach(() => void process.off('unhandledRejection', onRejection))

const load = (storage: ReturnType<typeof createStorage>) =>
  createClientHarness(server, 'pk_friendly', {
    clock,
    storage,
    options: { supports: { navigation: true, screenshots: true } },
  })

/** Stores a record that has a value in each field: an agent, an activity, a form and a request. */
async function storeRecord() {
  const storage = createStorage()
  const harness = load(storage)
  await harness.started()
  const { features } = server
  const conversation = server.conversation('pk_friendly')
  conversation.emit('agent.assigned', { agent: { displayName: 'Ada' } })
  features.request(conversation, 'navigation', { url: 'https://shop.example/lamps' })
  await until(() => harness.client.requests().length === 1 && harness.client.activity().length > 0)
  harness.client.stop()
  const record = { ...JSON.parse(storage.getItem(key)!), handled: ['an-id'] }
  record.forms = { preChat: { key: 'a-key', fields: { name: 'Ada' } } }
  return { storage, record }
}

/** Expects that the page works: it sends, receives, and handles what needs the record. */
async function expectWorking(storage: ReturnType<typeof createStorage>) {
  const harness = load(storage)
  const { client } = harness
  await harness.started()
  const before = client.messages().length
  client.sendMessage('Are you there?')
  const conversation = server.conversation('pk_friendly')
  conversation.agentSays('Yes')
  await until(() => harness.bodies().includes('Yes') && client.messages().length >= before + 2)
  const request = server.features.request(conversation, 'navigation', { url: 'https://shop.example/a' })
  await until(() => client.requests().some(({ id }) => id === request))
  conversation.emit('agent.assigned', { agent: { displayName: 'Grace' } })
  await until(() => client.presence().agent?.displayName === 'Grace')
  expect(client.formState('preChat').status).toMatch(/open|sending|submitted|failed/)
  client.stop()
  expect(rejections).toEqual([])
}

type Json = null | boolean | number | string | Json[] | { [name: string]: Json }

/** Returns the paths of all values in a record. */
const pathsIn = (value: Json, path: string[] = []): string[][] => [
  path,
  ...(value && typeof value === 'object'
    ? Object.entries(value).flatMap(([name, child]) => pathsIn(child, [...path, name]))
    : []),
]

function replaceAt(value: Json, [name, ...rest]: string[], replacement: Json): Json {
  if (name === undefined) return replacement
  const copy = (Array.isArray(value) ? [...value] : { ...(value as object) }) as { [name: string]: Json }
  copy[name] = replaceAt(copy[name]!, rest, replacement)
  return copy
}

describe('a page with a stored record of the features', () => {
  it('continues with a record that is whole', async () => {
    const { storage, record } = await storeRecord()
    storage.setItem(key, JSON.stringify(record))
    const { client, started } = load(storage)
    await started()
    expect([client.requests().length, client.presence().agent?.displayName]).toEqual([1, 'Ada'])
  })

  it.each(['', '{', 'null', '7', '[]', '"text"', '{"forms":null}', '{"requests":{}}', '{"requests":[null]}'])(
    'works with the damaged record %s',
    async (damaged) => {
      const { storage } = await storeRecord()
      storage.setItem(key, damaged)
      await expectWorking(storage)
    },
  )

  it('works, whichever value of the record is replaced by another', async () => {
    const { storage, record } = await storeRecord()
    const values: Json[] = [null, true, -1, 'x\n', [], {}, [null], [[]], { length: 3 }]
    await forAllAsync(
      [fc.constantFrom(...pathsIn(record)), fc.constantFrom(...values)],
      runs(200, 20),
      async (path, value) => {
        storage.setItem(key, JSON.stringify(replaceAt(record, path, value)))
        await expectWorking(storage)
      },
    )
  })
})

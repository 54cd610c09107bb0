import { setImmediate } from 'node:timers/promises'
import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { signal } from '@preact/signals'
import { IDBFactory, IDBObjectStore } from 'fake-indexeddb'
import { createStore, get, set } from 'idb-keyval'
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import { type Conversation, ConversationSchema } from '#proto/messaging/v1/messaging_pb.js'
import { until } from '../../../test/support/until.ts'
import { localStore } from '../storages.ts'
import { createAlerts } from './alerts.ts'

const shown: string[] = []

beforeEach(() => {
  class RecordedNotification {
    static permission = 'granted'
    constructor(_title: string, { body }: { body: string }) {
      shown.push(body)
    }
  }
  shown.length = 0
  vi.stubGlobal('window', { Notification: RecordedNotification })
  vi.stubGlobal('Notification', RecordedNotification)
  vi.stubGlobal('indexedDB', new IDBFactory())
  localStore.setItem('service.console.alerts', 'on')
})
afterEach(() => {
  localStore.removeItem('service.console.alerts')
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
})

const at = Date.UTC(2026, 10, 1)
const conversation = (sequence: number, body: string) =>
  create(ConversationSchema, {
    conversationId: 'cnv_1',
    lastSequence: sequence,
    lastMessageAt: timestampFromMs(at + sequence),
    lastMessage: {
      sequence,
      body,
      state: 'sent',
      author: { kind: 'visitor' },
      createdAt: timestampFromMs(at + sequence),
    },
  } as MessageInitShape<typeof ConversationSchema>)

const claims = () => createStore('service.console.alerts ada', 'conversations')

/** A tab without the focus, whose inbox has one conversation. */
function openTab(first: Conversation) {
  const conversations = signal(new Map([['cnv_1', first]]))
  const inbox = { conversations, isListed: signal(true) } as never
  // A chat that is shown plays no sound.
  const focus = { query: async () => ({ isFocused: false, isShown: true }) } as never
  const { stop } = createAlerts(inbox, 'ada', focus, () => {})
  onTestFinished(stop)
  return {
    stop,
    async receive(sequence: number, body: string) {
      conversations.value = new Map([['cnv_1', conversation(sequence, body)]])
      // Waits for its turn behind the transactions of this tab.
      await get('cnv_1', claims())
      await setImmediate()
    },
  }
}

it('notifies once of a message that several tabs receive, and not again in a tab that receives it after the first one was closed', async () => {
  const old = conversation(1, 'Before')
  const tabs = [openTab(old), openTab(old), openTab(old)]
  await Promise.all(tabs.map((tab) => tab.receive(2, 'Do you ship to Graz?')))
  expect(shown).toEqual(['Do you ship to Graz?'])
  tabs[0]!.stop()
  const late = openTab(old)
  await late.receive(2, 'Do you ship to Graz?')
  expect(shown).toHaveLength(1)
  await Promise.all([late, tabs[1]!].map((tab) => tab.receive(3, 'And to Linz?')))
  expect(shown).toEqual(['Do you ship to Graz?', 'And to Linz?'])
})

it('notifies of a message if the storage is full', async () => {
  vi.spyOn(IDBObjectStore.prototype, 'put').mockImplementation(() => {
    throw new DOMException('full', 'QuotaExceededError')
  })
  await openTab(conversation(1, 'Before')).receive(2, 'Do you ship to Graz?')
  expect(shown).toEqual(['Do you ship to Graz?'])
})

it('forgets after a week which messages were claimed', async () => {
  const week = 7 * 86_400_000
  await set('cnv_old', { sequence: 1, at: Date.now() - week - 1 }, claims())
  await set('cnv_new', { sequence: 1, at: Date.now() - week + 60_000 }, claims())
  openTab(conversation(1, 'Before'))
  await until('the removal', async () => !(await get('cnv_old', claims())))
  expect(await get('cnv_new', claims())).toBeTruthy()
})

import { create, type MessageInitShape } from '@bufbuild/protobuf'
import { timestampFromMs } from '@bufbuild/protobuf/wkt'
import { signal } from '@preact/signals'
import { afterEach, beforeEach, expect, it, onTestFinished, vi } from 'vitest'
import { type Conversation, ConversationSchema } from '#proto/messaging/v1/messaging_pb.js'
import { localStore } from '../storages.ts'
import { createAlerts } from './alerts.ts'

/** IndexedDB as the tabs of a browser share it: requests are answered later, and transactions run one after the other. */
function createDatabases(isFull = false) {
  const stored = new Map<string, unknown>()
  let last = Promise.resolve()
  const transaction = () => {
    const steps: (() => void)[] = []
    const request = (run: () => unknown) => {
      const made = { result: undefined as unknown, onsuccess() {} }
      steps.push(() => {
        made.result = run()
        made.onsuccess()
      })
      return made
    }
    const store = {
      get: (key: string) => request(() => structuredClone(stored.get(key))),
      put: (value: unknown, key: string) => request(() => stored.set(key, structuredClone(value))),
      openCursor: () => request(() => null),
    }
    const made = { objectStore: () => store, oncomplete() {}, onabort() {} }
    last = last.then(async () => {
      for (let step = steps.shift(); step; step = steps.shift()) {
        step()
        await Promise.resolve()
      }
      if (isFull) made.onabort()
      else made.oncomplete()
    })
    return made
  }
  const open = () => {
    const request = { result: { transaction }, onsuccess() {} }
    queueMicrotask(() => request.onsuccess())
    return request
  }
  return { open, ended: () => last }
}

const shown: string[] = []
let databases: ReturnType<typeof createDatabases>

beforeEach(() => {
  class RecordedNotification {
    static permission = 'granted'
    constructor(_title: string, { body }: { body: string }) {
      shown.push(body)
    }
  }
  shown.length = 0
  databases = createDatabases()
  vi.stubGlobal('window', { Notification: RecordedNotification })
  vi.stubGlobal('Notification', RecordedNotification)
  vi.stubGlobal('indexedDB', databases)
  localStore.setItem('service.console.alerts', 'on')
})
afterEach(() => {
  localStore.removeItem('service.console.alerts')
  vi.unstubAllGlobals()
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
      for (let turn = 0; turn < 20; turn += 1) await databases.ended()
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
  databases = createDatabases(true)
  vi.stubGlobal('indexedDB', databases)
  await openTab(conversation(1, 'Before')).receive(2, 'Do you ship to Graz?')
  expect(shown).toEqual(['Do you ship to Graz?'])
})

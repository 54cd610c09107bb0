import { byKey, createBatchLoader } from '../../platform/concurrency/batcher.ts'
import { createLruCache } from '../../platform/lru-cache.ts'
import { createSingleFlight } from '../concurrency/single-flight.ts'
import { perCore } from '../core.ts'
import { logFailure } from '../errors.ts'
import { eventsOf } from '../log/event-store.ts'
import type { GrowingText, GrownPart, LogEvent } from '../log-event.ts'

/** Minimum time in milliseconds between two parts of a message for a reader: at most ten a second. */
const paceMs = 110
/** Memory for texts, in characters. */
const maxChars = 8_000_000
const maxEnded = 10_000

/**
 * Keeps the texts of messages that grow, from the parts that any process has accepted, and reports
 * them with `growing`. If a part is missing, reads the message again.
 */
export const growingTextsOf = perCore((core) => {
  const { bus, logger } = core
  const known = createLruCache<{ texts: Map<string, GrowingText> }>(maxChars, ({ texts }) =>
    [...texts.values()].reduce((sum, { text }) => sum + text.length, 200),
  )
  /** Messages that have ended. A read that began before may still find them growing. */
  const ended = createLruCache<true>(maxEnded)
  let changed = new Map<string, GrowingText>()

  const load = createBatchLoader(async (places) =>
    byKey(
      await eventsOf(core).at(
        places.map((place) => {
          const [conversationId = '', sequence] = place.split(' ')
          return { conversationId, sequence: Number(sequence) }
        }),
      ),
      ({ conversationId, sequence }) => `${conversationId} ${sequence}`,
    ),
  )

  const sending = createSingleFlight(
    () => changed.size > 0,
    async () => {
      const texts = [...changed.values()]
      changed = new Map()
      bus.emit('growing', texts)
    },
    { paceMs },
  )

  const textsOf = (conversationId: string) => known.get(conversationId)?.texts ?? new Map<string, GrowingText>()

  function keep(growing: GrowingText) {
    const texts = new Map(textsOf(growing.conversationId))
    if ((texts.get(growing.messageId)?.length ?? -1) >= growing.length) return
    texts.set(growing.messageId, growing)
    known.set(growing.conversationId, { texts })
  }

  function changeTo(growing: GrowingText) {
    keep(growing)
    changed.set(growing.messageId, growing)
    void sending.run()
  }

  /** Must be called with each event that readers get, because its wake-up may have been lost. */
  function follow(event: LogEvent) {
    const { conversationId, sequence, type, message, growth } = event
    if (!message) return
    const { messageId, body } = message
    if (growth?.state === 'growing' && !ended.has(messageId))
      keep({ conversationId, messageId, sequence, text: body, length: growth.length })
    if (type !== 'message.completed') return
    ended.set(messageId, true)
    changed.delete(messageId)
    const texts = new Map(textsOf(conversationId))
    if (!texts.delete(messageId)) return
    if (texts.size > 0) known.set(conversationId, { texts })
    else known.delete(conversationId)
  }

  async function readAgain({ conversationId, sequence }: GrownPart) {
    const event = await load(`${conversationId} ${sequence}`)
    if (event?.growth?.state !== 'growing' || !event.message || ended.has(event.message.messageId)) return
    const { growth, message } = event
    const { messageId, body: text } = message
    if ((textsOf(conversationId).get(messageId)?.length ?? 0) < growth.length)
      changeTo({ conversationId, messageId, sequence, text, length: growth.length })
  }

  function add(part: GrownPart) {
    const { conversationId, messageId, offset, text } = part
    const growing = textsOf(conversationId).get(messageId)
    const length = offset + [...text].length
    if (ended.has(messageId) || (growing && growing.length >= length)) return
    if (growing?.length === offset) return changeTo({ ...growing, text: growing.text + text, length })
    readAgain(part).catch(logFailure(logger, 'read of a growing message failed; its next part will repeat it'))
  }

  bus.on('appended', follow)
  bus.on('advanced', (conversationId, _end, event) => {
    if (event) follow(event)
    // The event may be the end of a message.
    else known.delete(conversationId)
  })
  bus.on('gap', () => known.clear())
  bus.on('grew', add)
  bus.on('grewElsewhere', add)

  return {
    follow,
    /** Returns the messages that grow in a conversation, as far as this process knows. */
    in: (conversationId: string) => [...(known.peek(conversationId)?.texts.values() ?? [])],
  }
})

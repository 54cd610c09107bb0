/** A message of the other side that the service has stored. */
interface Received {
  messageId: string
  sequence: number
  state: string
}

interface ReceiptsDeps {
  /** Returns the messages of the other side in order. */
  received(): readonly Received[]
  /** Returns the sequence of the last message that was read. */
  readTo(): number
  isHidden(): boolean
  report(upToSequence: number, state: 'delivered' | 'read'): Promise<unknown>
}

/**
 * Reports the latest message that was read as `read` if the page is visible, and the latest message as
 * `delivered`. One report covers all earlier messages. A failed report is repeated with the next update.
 */
export function createReceipts({ received, readTo, isHidden, report }: ReceiptsDeps) {
  const reported = { read: '', delivered: '' }
  let isReporting = false

  return async function update() {
    if (isReporting) return
    isReporting = true
    try {
      for (let next = due(); next; next = due()) {
        const [state, { sequence, messageId }] = next
        await report(sequence, state)
        // After a restore of the service's data, another message may have the same sequence.
        reported[state] = messageId
      }
    } catch {
    } finally {
      isReporting = false
    }
  }

  function due() {
    const all = received()
    const wanted = [
      ['read', isHidden() ? undefined : all.findLast(({ sequence }) => sequence <= readTo())],
      ['delivered', all.at(-1)],
    ] as const
    for (const [state, message] of wanted) {
      const isKnown = !message || [state, 'read'].includes(message.state)
      if (!isKnown && ![reported[state], reported.read].includes(message.messageId)) return [state, message] as const
    }
    return undefined
  }
}

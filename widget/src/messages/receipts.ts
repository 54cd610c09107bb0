import { isTeam } from '../../../browser/team.ts'
import type { WidgetMessage } from '../client/types.ts'

export interface ReceiptsDeps {
  messages(): readonly WidgetMessage[]
  /** Returns the sequence of the last message that the visitor has read. */
  readTo(): number
  isHidden(): boolean
  report(upToSequence: number, state: 'delivered' | 'read'): Promise<unknown>
}

/**
 * Reports the latest message of agents that the visitor has read as `read` if the page is visible, and
 * the latest message as `delivered`. One report covers all earlier messages. A failed report is repeated
 * with the next update.
 */
export function createReceipts({ messages, readTo, isHidden, report }: ReceiptsDeps) {
  const reported = { read: '', delivered: '' }
  let isReporting = false

  return async function update() {
    if (isReporting) return
    isReporting = true
    for (let next = due(); next; next = due()) {
      const [state, message] = next
      const done = await report(message!.sequence!, state).then(
        () => true,
        () => false,
      )
      if (!done) break
      // After a restore of the service's data, another message may have the same sequence.
      reported[state] = message!.messageId!
    }
    isReporting = false
  }

  function due() {
    const answers = messages().filter(({ author, sequence }) => isTeam(author) && sequence)
    const read = isHidden() ? undefined : answers.findLast(({ sequence }) => sequence! <= readTo())
    const wanted = [
      ['read', read],
      ['delivered', answers.at(-1)],
    ] as const
    return wanted.find(
      ([state, message]) =>
        message &&
        ![state, 'read'].includes(message.deliveryStatus) &&
        ![reported[state], reported.read].includes(message.messageId!),
    )
  }
}

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
 * Reports the latest message of agents as `read` if the page shows it, else as `delivered`. One
 * report covers all earlier messages. A failed report is repeated with the next update.
 */
export function createReceipts({ messages, readTo, isHidden, report }: ReceiptsDeps) {
  let reported = ''
  let isReporting = false

  return async function update() {
    if (isReporting) return
    isReporting = true
    for (;;) {
      const latest = messages().findLast(({ author, sequence }) => isTeam(author) && sequence)
      const { messageId, sequence = 0, deliveryStatus } = latest ?? {}
      const state = sequence <= readTo() && !isHidden() ? 'read' : 'delivered'
      // After a restore of the service's data, another message may have the same sequence.
      const next = `${messageId} ${state}`
      if (!latest || [state, 'read'].includes(deliveryStatus!) || [next, `${messageId} read`].includes(reported)) break
      const done = await report(sequence, state).then(
        () => true,
        () => false,
      )
      if (!done) break
      reported = next
    }
    isReporting = false
  }
}

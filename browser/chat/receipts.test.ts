import { describe, expect, it } from 'vitest'
import { isTeam } from './messages.ts'
import { createReceipts } from './receipts.ts'

function receipts() {
  const messages: { author: { kind: string }; messageId: string; sequence: number; state: string }[] = []
  const reports: string[] = []
  const page = { readTo: 0, isHidden: false, fails: false }
  const update = createReceipts({
    received: () => messages.filter(({ author }) => isTeam(author)),
    readTo: () => page.readTo,
    isHidden: () => page.isHidden,
    async report(upToSequence, state) {
      reports.push(`${upToSequence} ${state}`)
      if (page.fails) throw new Error('offline')
    },
  })
  function add(sequence: number, kind: 'agent' | 'visitor' | 'system' = 'agent', state = 'sent') {
    messages.push({ messageId: `msg_${sequence}`, sequence, author: { kind }, state })
  }
  return { reports, page, update, add }
}

describe('receipts', () => {
  it('report the latest message of an agent as delivered, and as read when it is shown, once each', async () => {
    const { reports, page, update, add } = receipts()
    for (const sequence of [1, 2, 3]) add(sequence)
    await update()
    await update()
    page.readTo = 3
    await update()
    page.readTo = 0
    await update()
    expect(reports).toEqual(['3 delivered', '3 read'])
  })

  it('report no message as read while the page is hidden', async () => {
    const { reports, page, update, add } = receipts()
    add(1)
    Object.assign(page, { readTo: 1, isHidden: true })
    await update()
    page.isHidden = false
    await update()
    expect(reports).toEqual(['1 delivered', '1 read'])
  })

  it('are repeated after a failure, and combine messages that arrive meanwhile', async () => {
    const { reports, page, update, add } = receipts()
    add(1)
    page.fails = true
    await update()
    page.fails = false
    const reporting = update()
    for (const sequence of [2, 3]) {
      add(sequence)
      void update()
    }
    await reporting
    expect(reports).toEqual(['1 delivered', '1 delivered', '3 delivered'])
  })

  it('are not sent for messages of the visitor, and not for states that the service already has', async () => {
    const { reports, page, update, add } = receipts()
    add(1, 'visitor')
    await update()
    add(2, 'agent', 'read')
    add(3, 'system')
    page.readTo = 3
    await update()
    expect(reports).toEqual([])
  })
})

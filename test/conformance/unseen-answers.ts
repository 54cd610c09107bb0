import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { expect } from 'vitest'
import { newSite } from '../support/resources.ts'
import { concurrentRule } from './rule.ts'
import type { Suite } from './suite.ts'

/** Tests of answers that nobody has seen. They wait for minutes, so they run concurrently. */
export function unseenAnswerRules(suite: () => Suite): void {
  /** A website of its own, whose visitors leave an address and are away when an agent answers. */
  async function newShop() {
    const { stack, operator } = suite().roomy
    const { origin } = stack.demo
    const site = await newSite(operator, [origin], {
      capabilities: { offlineForm: true, receipts: true },
      forms: { offline: { fields: [{ name: 'mail', label: 'Mail', type: 'email', required: true }] } },
      unseenAfterMinutes: 1,
    })
    async function answered(mail: string) {
      const visitor = await stack.newVisitor({ siteKey: site.siteKey })
      const headers = { 'idempotency-key': randomUUID() }
      const left = await visitor.call('POST', '/forms/offline', { headers, body: { fields: { mail } } })
      expect(left.status).toBe(202)
      const { conversationId } = visitor.session
      const answer = answerIn(conversationId)
      const { message } = await operator.messaging.sendAgentMessage(answer)
      const { messageId, sequence } = message!
      return { visitor, conversationId, messageId, sequence, body: answer.body }
    }
    return { ...site, answered }
  }
  const answerIn = (conversationId: string) => ({
    conversationId,
    clientOperationId: randomUUID(),
    body: `answer ${randomUUID()}`,
    agent: { displayName: 'Ada' },
  })
  type Shop = Awaited<ReturnType<typeof newShop>>
  type Answered = Awaited<ReturnType<Shop['answered']>>

  async function read({ visitor, sequence }: Answered) {
    const body = { upToSequence: Number(sequence), state: 'read' }
    expect((await visitor.call('POST', '/messages/receipts', { body })).status).toBe(204)
  }

  /** Reads the feed until it says that this message was not seen. Returns all such messages of the website. */
  async function untilTold({ workspaceId }: Shop, { messageId }: Answered) {
    const told: string[] = []
    let cursor = ''
    while (!told.includes(messageId)) {
      const types = ['message.unseen']
      const page = await suite().roomy.operator.events.listEvents({ workspaceId, cursor, types, waitSeconds: 30 })
      cursor = page.cursor
      told.push(...page.events.map(({ unseen }) => unseen!.messageId))
    }
    return told
  }

  concurrentRule('C8.40', async () => {
    const shop = await newShop()
    const seen = await shop.answered('seen@example.org')
    await read(seen)
    const unseen = await shop.answered('unseen@example.org')
    expect(await untilTold(shop, unseen)).toEqual([unseen.messageId])
    await suite().roomy.operator.messaging.sendAgentMessage(answerIn(unseen.conversationId))
    const later = await shop.answered('later@example.org')
    expect(await untilTold(shop, later)).toEqual([unseen.messageId, later.messageId])
  })

  concurrentRule('C8.41', async () => {
    const shop = await newShop()
    const { workspaceId } = shop
    const mails = suite().mails()
    const to = (address: string) => mails.filter((mail) => mail.to.includes(address))
    /** Waits until the test's own time limit, because a core looks for unseen answers and due mails once a minute. */
    const untilMailed = async (address: string) => {
      while (to(address).length === 0) await delay(1000)
    }
    const unwanted = `no-${randomUUID()}@example.org`
    const wanted = `yes-${randomUUID()}@example.org`
    const last = `last-${randomUUID()}@example.org`
    await shop.answered(unwanted)
    const entries = [{ of: { case: 'email' as const, value: unwanted } }]
    await suite().roomy.operator.workspaces.addSuppressions({ workspaceId, entries })
    const { body } = await shop.answered(wanted)
    await untilMailed(wanted)
    await shop.answered(last)
    await untilMailed(last)
    expect(to(unwanted)).toEqual([])
    const [mail, ...others] = to(wanted)
    expect(others).toEqual([])
    for (const part of [mail!.text, mail!.html]) expect(part).toContain(body)
    const stop = /<(https?:[^>]+)>/.exec(mail!.headers.get('list-unsubscribe')!)![1]
    expect(mail!.text).toContain(stop)
  })
}

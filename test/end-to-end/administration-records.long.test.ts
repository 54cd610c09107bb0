import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { adminHere } from '../support/admin.ts'
import { botOf } from '../support/bot.ts'
import { runs } from '../support/is-long.ts'
import { useLocalStack } from '../support/local-stack.ts'

const stack = useLocalStack()

const steps = ['visitor', 'agent', 'bot', 'assign', 'close', 'redact', 'note', 'tag', 'revoke', 'ban'] as const
const conversation = fc.uniqueArray(fc.constantFrom(...steps), { maxLength: 5 })
const lead = fc.record({
  fields: fc.constantFrom<Record<string, string>>(
    {},
    { name: 'Ada' },
    { email: 'ada@shop.example', phone: '+4930123' },
  ),
  isDelivered: fc.boolean(),
})
const records = fc.record({
  conversations: fc.array(conversation, { maxLength: 2 }),
  leads: fc.array(lead, { maxLength: 2 }),
  hasHook: fc.boolean(),
  isSuppressed: fc.boolean(),
})

/** Makes one conversation step by step. Returns the commands that are about it. */
async function converse(made: readonly (typeof steps)[number][]): Promise<string[][]> {
  const { messaging, sessions } = stack.operator()
  const visitor = await stack.newVisitor({})
  const { conversationId, sessionId } = visitor.session
  const clientOperationId = randomUUID()
  const agent = { displayName: 'Ada' }
  let message: { messageId: string; sequence: number } | undefined
  for (const step of made) {
    if (step === 'visitor') message = (await visitor.send('Hello')).body?.message ?? message
    if (step === 'agent')
      message = (await messaging.sendAgentMessage({ conversationId, clientOperationId, body: 'Hi', agent })).message
    if (step === 'bot')
      await (await botOf(stack)).sendBotMessage({
        conversationId,
        clientOperationId: randomUUID(),
        body: 'Beep',
        bot: { displayName: 'Robo' },
      })
    if (step === 'assign') await messaging.assignAgent({ conversationId, agent })
    if (step === 'close') await messaging.closeConversation({ conversationId })
    if (step === 'redact' && message)
      await messaging.redactMessage({ conversationId, sequence: message.sequence, agent })
    if (step === 'note') await messaging.addNote({ conversationId, clientOperationId: 'note', body: 'x', agent })
    if (step === 'tag') await messaging.addTag({ conversationId, tag: 'vip' })
    if (step === 'revoke') await sessions.revokeSession({ sessionId })
    if (step === 'ban') await sessions.banVisitor({ sessionId, addressBanSeconds: 3_600 })
  }
  // The next visitor has the same address.
  if (made.includes('ban')) await sessions.unbanVisitor({ sessionId })
  return [
    ['explain', '--session', sessionId],
    ['visitors', 'export', '--session', sessionId],
    ...(message ? [['explain', '--conversation', conversationId, '--message', message.messageId]] : []),
  ]
}

it('shows every kind of record with each command that lists or shows, as text and as JSON', async () => {
  const { leads, hooks, workspaces } = stack.operator()
  const { workspaceId } = stack.demo
  const admin = (args: string[]) => adminHere(args, { DATA_DIR: stack.dataDir })
  const check = async (given: string[], asJson: boolean) => {
    const ended = await admin([...given, ...(asJson ? ['--json'] : [])])
    expect({ given, ...ended }).toMatchObject({ code: 0, stderr: '' })
    expect(ended.stdout).not.toMatch(/undefined|\bnull\b|NaN|\[object/)
    if (asJson) JSON.parse(ended.stdout)
  }
  const subscription = { workspaceId, destinationUrl: 'https://1.1.1.1/leads', mappedFields: ['name'] }
  const { subscriptionId } = await leads.createSubscription(subscription)

  await fc.assert(
    fc.asyncProperty(records, async ({ conversations, leads: given, hasHook, isSuppressed }) => {
      const about: string[][] = []
      for (const each of conversations) about.push(...(await converse(each)))
      for (const { fields, isDelivered } of given) {
        const { leadId } = await leads.captureLead({ workspaceId, source: 'api', fields })
        if (!isDelivered) continue
        const { attempt } = await leads.createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey: leadId })
        about.push(['explain', '--delivery', attempt!.deliveryId])
      }
      if (hasHook) {
        const { hook } = await hooks.createHook({
          workspaceId,
          destinationUrl: 'https://1.1.1.1/',
          eventTypes: ['conversation.closed'],
        })
        await leads.sendTestDelivery({ subscriptionId: hook!.hookId }).catch(() => {})
      }
      if (isSuppressed)
        await workspaces.addSuppressions({ workspaceId, entries: [{ of: { case: 'email', value: 'a@shop.example' } }] })
      const of = ['--workspace', workspaceId]
      for (const group of ['connections', 'installations', 'subscriptions', 'hooks', 'suppressions'])
        about.push([group, 'list', ...of])
      about.push(['workspaces', 'list'], ['workspaces', 'show', ...of], ['workspaces', 'changes', ...of])
      for (const group of ['conversations', 'deliveries'])
        about.push([group, 'list', ...of], [group, 'list', ...of, '--limit', '1'])
      about.push(['conversations', 'list', ...of, '--unanswered'])
      for (const each of about) {
        await check(each, false)
        if (each[1] === 'list' || each[1] === 'show') await check(each, true)
      }
    }),
    {
      ...runs(40),
      examples: [
        [
          {
            conversations: [
              [],
              ['agent'],
              ['bot'],
              ['visitor', 'agent', 'assign'],
              ['bot', 'close'],
              ['assign', 'revoke'],
            ],
            leads: [{ fields: {}, isDelivered: true }],
            hasHook: true,
            isSuppressed: true,
          },
        ],
      ],
    },
  )
})

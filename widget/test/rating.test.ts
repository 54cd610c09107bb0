import { expect, it } from 'vitest'
import { transcriptOf } from '../src/ui/forms/rating-card.ts'
import { createDates } from '../src/ui/languages/dates.ts'
import { englishTexts } from '../src/ui/languages/en.ts'
import { createClientHarness, until } from './client-harness.ts'
import { serverPerTest } from './server-per-test.ts'

const { server } = serverPerTest({ capabilities: { rating: true } })

async function asked() {
  const harness = createClientHarness(server, 'pk_friendly')
  await harness.started()
  const talk = server.conversation('pk_friendly')
  talk.emit('conversation.closed')
  talk.emit('rating.requested')
  await until(() => harness.client.presence().rating === 'requested')
  return { ...harness, talk }
}

it('a rating is sent once, with one key for all attempts of the same rating, and is given afterwards', async () => {
  const { client } = await asked()
  const rating = { score: 4, comment: 'Quick' }
  server.features.failNext('/ratings', 'lost')
  await expect(client.rate(rating)).rejects.toMatchObject({ retryable: true })
  expect(client.presence().rating).toBe('requested')
  await client.rate(rating)
  expect(client.presence().rating).toBe('given')
  expect(server.features.ratings).toEqual([rating])
  const keys = server.seen('POST /ratings').map(({ headers }) => headers['idempotency-key'])
  expect(new Set(keys).size).toBe(1)
})

it.each([
  ['RatingAlreadyGiven', 'given'],
  ['RatingNotRequested', undefined],
] as const)('after %s the state of the rating is %s', async (code, state) => {
  const { client } = await asked()
  server.features.failNext('/ratings', { status: 409, code })
  await client.rate({ score: 1 })
  expect(client.presence().rating).toBe(state)
})

it('a page that is opened later shows that another tab has rated, and shows no rating after the conversation is reopened', async () => {
  const { client, talk, storage } = await asked()
  client.stop()
  talk.emit('rating.given', { score: 5 })
  const fresh = createClientHarness(server, 'pk_friendly', { storage })
  await fresh.started()
  await until(() => fresh.client.presence().rating === 'given')
  talk.emit('conversation.reopened')
  await until(() => !fresh.client.presence().isClosed)
  expect(fresh.client.presence().rating).toBeUndefined()
})

it('a transcript has the whole history with authors and times, withdrawn messages, and no line that looks like another message', async () => {
  const { client, started, storage } = createClientHarness(server, 'pk_friendly')
  await started()
  const talk = server.conversation('pk_friendly')
  for (let index = 0; index < 130; index += 1) talk.agentSays(`answer ${index}`)
  talk.agentSays('one\n[01.01.2026] Ada: forged')
  const slip = talk.agentSays('a slip')
  Object.assign(slip, { body: '', redactedAt: slip.createdAt })
  client.stop()
  const again = createClientHarness(server, 'pk_friendly', { storage })
  await again.started()
  await until(() => again.client.messages().length > 0)
  const lines = (await transcriptOf(again.client, englishTexts, createDates('en-GB', englishTexts))).split('\n')
  expect(lines.filter((line) => /^\[\d+ \w+ \d{4}, \d\d:\d\d\] Anna Keller: answer \d+$/.test(line))).toHaveLength(130)
  expect(lines.slice(-4)).toEqual([
    expect.stringMatching(/\] Anna Keller: one$/),
    '    [01.01.2026] Ada: forged',
    expect.stringMatching(/\] Anna Keller: This message was withdrawn\.$/),
    '',
  ])
})

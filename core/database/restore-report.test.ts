import { expect, it } from 'vitest'
import { testClient, testDatabase } from '../../test/support/test-database.ts'
import { reportOf } from './restore-report.ts'

const [before, after] = [testDatabase({ isNew: true }), testDatabase({ isNew: true })]
const [replaced, restored] = [testClient().db(before.name), testClient().db(after.name)]

it('lists lost messages by conversation, all lost bans, and idempotency records by their number only', async () => {
  const event = (conversationId: string, sequence: number) => ({ conversationId, sequence })
  const events = [event('cnv_1', 1), event('cnv_1', 2), event('cnv_1', 3), event('cnv_2', 1)]
  await replaced.collection<object>('events').insertMany(events)
  const [kept] = await replaced.collection('events').find({ conversationId: 'cnv_1', sequence: 1 }).toArray()
  await restored.collection('events').insertOne(kept!)
  const bans = Array.from({ length: 60 }, (_, index) => ({ _id: `visitor-${index}`, bannedAt: new Date() }))
  await replaced.collection<{ _id: string }>('visitors').insertMany(bans)
  await replaced.collection<{ _id: string }>('idempotency').insertOne({ _id: 'hash' })

  const text = await reportOf({ file: 'backup', at: new Date(), restored, replaced })
  expect(text).toContain('Messages and other events that are gone: 3\n')
  expect(text).toContain('- cnv_1: 2\n- cnv_2: 1\n')
  expect(text).toContain('Bans that are lifted: 60\n')
  for (const { _id } of bans) expect(text).toContain(`- ${_id}\n`)
  expect(text).toContain('Idempotency records that are gone: 1\n')
  expect(text).not.toContain('hash')
})

it.each([
  ['sessions', { status: 'revoked' }, { status: 'active' }, 'are live again'],
  ['sessions', { status: 'active', consents: [1, 2] }, { status: 'active', consents: [1] }, 'Consent decisions'],
  ['suppressions', undefined, {}, 'Suppressions that are back'],
  ['consoleSessions', undefined, {}, 'are signed in again'],
  ['installations', { identitySecrets: ['new'] }, { identitySecrets: ['old'] }, 'Identity secrets'],
  ['leadSubscriptions', { secrets: ['new'] }, { secrets: ['old'] }, 'Signing secrets'],
  ['connections', { status: 'disabled' }, { status: 'enabled' }, 'Connections with an earlier status'],
  ['deliveries', { status: 'accepted' }, { status: 'pending' }, 'are sent again under the same ids'],
])('lists a document of %s that was %j and is %j again, and none that is the same', async (name, was, is, title) => {
  const [changed, same] = [`changed ${title}`, `same ${title}`]
  const replacedOnes = replaced.collection<{ _id: string }>(name)
  const restoredOnes = restored.collection<{ _id: string }>(name)
  await replacedOnes.insertMany([{ _id: same, ...is }, ...(was ? [{ _id: changed, ...was }] : [])])
  await restoredOnes.insertMany([
    { _id: same, ...is },
    { _id: changed, ...is },
  ])
  const text = await reportOf({ file: 'backup', at: new Date(), restored, replaced })
  const [part = ''] = text.split('## ').filter((each) => each.split('\n', 1)[0]!.includes(title))
  expect(part).toContain(`- ${changed}\n`)
  expect(text).not.toContain(`- ${same}\n`)
})

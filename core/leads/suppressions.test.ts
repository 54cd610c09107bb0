import { randomUUID } from 'node:crypto'
import { beforeAll, describe, expect, it } from 'vitest'
import { itLong } from '../../test/support/is-long.ts'
import { listAttempts, retryAttempt } from '../deliveries/deliveries.ts'
import { captureLead, submitForm } from '../deliveries/lead-capture.ts'
import { addSuppressions } from '../deliveries/suppressing.ts'
import type { SessionContent } from '../sessions/model.ts'
import { addResults, claimDue } from '../test/claims.ts'
import { codeOf, hasFailed, newSubject, testCores } from '../test/cores.ts'
import { clientsOf } from '../test/operator-clients.ts'
import { credentialsOf } from '../test/visitor-credentials.ts'
import { acceptForms } from '../test/visitor-marks.ts'
import type { SuppressionEntry } from './suppressions.ts'
import { removeSuppressions } from './suppressions.ts'

const cores = testCores({ count: 2 })
beforeAll(() => acceptForms(cores))

const newEmail = () => `${randomUUID()}@example.com`
const email = (value: string): SuppressionEntry => ({ kind: 'email', value })

const add = (entries: SuppressionEntry[], core = cores.core, workspaceId = cores.workspaceId) =>
  addSuppressions(core, { workspaceId, entries, reason: 'asked us', addedBy: 'desk' })

const remove = (entries: SuppressionEntry[]) =>
  removeSuppressions(cores.core, { workspaceId: cores.workspaceId, entries, suppressionIds: [] })

const submit = (session: SessionContent, value: string, { core = cores.other, key = randomUUID() as string } = {}) =>
  submitForm(core, {
    credentials: credentialsOf(session),
    form: 'offline',
    fields: { email: value },
    idempotencyKey: key,
  })

const capture = (fields: Record<string, string>, conversationId?: string) =>
  captureLead(cores.other, { workspaceId: cores.workspaceId, source: 'crm', fields, conversationId }, undefined)

const deliveriesOf = (leadId: string) => listAttempts(cores.core, { leadId }, { subject: 'desk' })

const claim = (core = cores.core) => claimDue(core)

describe('a suppressed person', () => {
  it('cannot submit a form or be captured as a lead on any core until the entry is removed, but can chat', async () => {
    const [session, address] = [await cores.newSession(), newEmail()]
    expect(await add([email(address.toUpperCase())])).toEqual({ added: 1, existing: 0 })
    for (const core of cores.cores)
      await expect.poll(() => codeOf(submit(session, address, { core })), { interval: 20 }).toBe('VisitorSuppressed')
    expect(await codeOf(capture({ contact: ` ${address} ` }))).toBe('VisitorSuppressed')
    expect(await codeOf(cores.send(session, `write to ${address}`))).toBe('ok')
    expect(await codeOf(submit(session, newEmail()))).toBe('ok')
    expect(await remove([email(address)])).toBe(1)
    expect(await codeOf(submit(session, address))).toBe('ok')
  })

  it('gets the first result for a repeated form that was accepted before the entry was added', async () => {
    const [session, address] = [await cores.newSession(), newEmail()]
    const { formSubmissionId } = await submit(session, address, { key: 'form-1' })
    await add([email(address)])
    expect(await submit(session, address, { key: 'form-1' })).toEqual({ formSubmissionId, replayed: true })
  })

  itLong('is recognized by the verified visitor’s user id, in forms and in leads of the conversation', async () => {
    const sub = newSubject()
    const verified = await cores.newVerified(sub)
    await add([{ kind: 'subject', value: sub }])
    await expect.poll(() => codeOf(submit(verified, newEmail())), { interval: 20 }).toBe('VisitorSuppressed')
    expect(await codeOf(capture({ name: 'Ada' }, verified.conversationId))).toBe('VisitorSuppressed')
    expect(await codeOf(submit(await cores.newVerified(), newEmail()))).toBe('ok')
  })

  it('is suppressed in one workspace only', async () => {
    const address = newEmail()
    await add([email(address)], cores.core, (await cores.newSite()).workspaceId)
    expect(await codeOf(capture({ address }))).toBe('ok')
  })
})

describe('a delivery of a suppressed person', () => {
  it('ends as failed when the entry is added, whether it waits, retries or is held', async () => {
    const address = newEmail()
    const waiting = await capture({ address })
    const retrying = await capture({ address })
    const claimed = (await claim()).filter(({ destination }) => destination !== '')
    const ids = await deliveriesOf(retrying)
    await addResults(
      cores.core,
      claimed.map(({ deliveryId, attemptId, claimId }) => ({
        deliveryId,
        attemptId,
        claimId,
        durationMs: 1,
        facts: ids.some((attempt) => attempt.deliveryId === deliveryId) ? { status: 503 } : 'released',
      })),
    )
    expect((await deliveriesOf(retrying)).at(-1)).toMatchObject({ status: 'retry_scheduled' })
    await add([email(address)])
    expect(await deliveriesOf(waiting)).toMatchObject([{ status: 'failed', responseClass: 'suppressed' }])
    expect(await deliveriesOf(retrying)).toMatchObject([
      { status: 'retry_scheduled', responseClass: 'server_error' },
      { status: 'failed', responseClass: 'suppressed', attemptNumber: 2 },
    ])
    const [attempt] = await deliveriesOf(waiting)
    const retry = { attemptId: attempt!.attemptId, idempotencyKey: randomUUID() }
    expect(await codeOf(retryAttempt(cores.core, retry, { subject: 'desk' }))).toBe('VisitorSuppressed')
  })

  it('is not sent again if a worker was sending it when the entry was added', async () => {
    const address = newEmail()
    const leadId = await capture({ address })
    const claimed = await claim()
    const sending = (await deliveriesOf(leadId))[0]!
    expect(claimed.map(({ deliveryId }) => deliveryId)).toContain(sending.deliveryId)
    await add([email(address)])
    expect(await deliveriesOf(leadId)).toMatchObject([{ status: 'sending' }])
    // The worker dies. After the lease, a claim ends the delivery and does not return it.
    cores.advance(600)
    expect((await claim()).map(({ deliveryId }) => deliveryId)).not.toContain(sending.deliveryId)
    expect((await deliveriesOf(leadId)).at(-1)).toMatchObject({ status: 'failed', responseClass: 'suppressed' })
  })

  it('ends at its next claim if an earlier version stored its lead without contact hashes', async () => {
    const address = newEmail()
    const leadId = await capture({ address })
    await cores.core.database.collections.leads.updateOne({ _id: leadId }, { $unset: { contacts: '' } })
    await add([email(address)])
    await claim()
    expect(await deliveriesOf(leadId)).toMatchObject([{ status: 'failed', responseClass: 'suppressed' }])
  })

  itLong('ends when the entry is added again, no matter at which write the first process died', async () => {
    await cores.untilOneSurvives(async (mortal) => {
      const address = newEmail()
      const leadId = await capture({ address })
      const died = await hasFailed(add([email(address)], mortal))
      await add([email(address)])
      expect((await deliveriesOf(leadId)).at(-1)).toMatchObject({ status: 'failed', responseClass: 'suppressed' })
      return died
    })
  })
})

describe('the suppression list', () => {
  it('contains who added an entry, when and why, but not the contact itself', async () => {
    const { workspaceId } = await cores.newSite()
    const [address, phone] = [newEmail(), '+43 660 7654321']
    const { workspaces } = await clientsOf(cores.core, workspaceId)
    const entries = [
      { of: { case: 'email' as const, value: address } },
      { of: { case: 'phone' as const, value: phone } },
      { of: { case: 'phone' as const, value: '0043/660/7654321' } },
    ]
    expect(await workspaces.addSuppressions({ entries, reason: 'letter' })).toMatchObject({ added: 2, existing: 0 })
    expect(await workspaces.addSuppressions({ entries, reason: 'again' })).toMatchObject({ added: 0, existing: 2 })
    const first = await workspaces.listSuppressions({ limit: 1 })
    const second = await workspaces.listSuppressions({ limit: 1, pageToken: first.nextPageToken })
    const listed = [...first.suppressions, ...second.suppressions]
    expect(listed.map(({ kind }) => kind).toSorted()).toEqual(['email', 'phone'])
    expect(listed.every(({ reason, addedBy, addedAt }) => reason === 'letter' && addedBy !== '' && addedAt)).toBe(true)
    const stored = await cores.core.database.collections.suppressions.find({ workspaceId }).toArray()
    expect(JSON.stringify(stored)).not.toMatch(/example\.com|7654321/)
    expect((await workspaces.listSuppressions({ entry: entries[2] })).suppressions).toHaveLength(1)
    expect(await workspaces.removeSuppressions({ suppressionIds: [listed[0]!.suppressionId] })).toMatchObject({
      removed: 1,
    })
  })

  it.each([
    ['neither subject, address nor number', { value: 'x' }, '/entries/1 required'],
    ['no address', email('ada'), '/entries/1/email format'],
    ['no number', { kind: 'phone' as const, value: 'call me' }, '/entries/1/phone format'],
    ['an empty subject', { kind: 'subject' as const, value: '' }, '/entries/1/subject format'],
  ])('rejects an entry that is %s, and then adds nothing', async (_, entry, expected) => {
    const address = newEmail()
    const failure = await add([email(address), entry]).catch((error) => error)
    expect(failure.issues.map(({ path, rule }: { path: string; rule: string }) => `${path} ${rule}`)).toEqual([
      expected,
    ])
    expect(await codeOf(capture({ address }))).toBe('ok')
  })

  it('accepts 1 to 1,000 entries per call', async () => {
    const entries = Array.from({ length: 1001 }, (_, index) => email(`a${index}@example.com`))
    expect(await codeOf(add(entries))).toBe('ValidationFailed')
    expect(await codeOf(add([]))).toBe('ValidationFailed')
    const { workspaceId } = await cores.newSite()
    expect(await add(entries.slice(1), cores.core, workspaceId)).toEqual({ added: 1000, existing: 0 })
  })
})

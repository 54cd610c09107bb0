import { randomUUID } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { createKeyring, parseSecretKeys } from '../../core/keys/keyring.ts'
import { createAccess } from '../../core/workspaces/access.ts'
import { adminHere } from '../support/admin.ts'
import { startLocalStack, useLocalStack } from '../support/local-stack.ts'
import { startLocalWorker } from '../support/local-worker.ts'
import { startReceiver } from '../support/receiver.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'

const database = testDatabase()
const stack = useLocalStack({ database, coreEnv: { DELIVERY_ALLOWED_CIDRS: '127.0.0.1/32' } })

const explain = (...args: string[]) => adminHere(['explain', ...args], { DATA_DIR: stack.dataDir })

async function newSite(origin: string) {
  const { workspaces } = stack.operator()
  const { connection } = await workspaces.createConnection({ workspaceId: stack.demo.workspaceId, name: 'Another' })
  const { connectionId } = connection!
  const { installation } = await workspaces.createInstallation({ connectionId, origins: [origin] })
  return { connectionId, siteKey: installation!.publicSiteKey }
}

async function sessionText(sessionId: string): Promise<string> {
  const { code, stdout, stderr } = await explain('--session', sessionId)
  expect([code, stderr]).toEqual([0, ''])
  return stdout
}

it('`explain --session` names the log line to search for if nothing stored refuses the session', async () => {
  const { session } = await stack.newVisitor()
  const text = await sessionText(session.sessionId)
  expect(text).toContain(`It writes to conversation ${session.conversationId}.`)
  expect(text).toMatch(/It is active and expires at \d{4}-/)
  expect(text).toContain('No page of its conversation has an open stream now.')
  expect(text).toContain(`doctor --gateway URL --site-key ${stack.demo.siteKey} --origin ${stack.demo.origin}`)
  expect(text).toContain('"event stream ended"')
  expect(text).not.toContain(session.accessGrant)
})

it('`explain --message` says when the message was stored, which state it has, and which request stored it', async () => {
  const visitor = await stack.newVisitor()
  const { conversationId } = visitor.session
  const send = (correlationId: string) =>
    visitor.call('POST', '/messages', {
      headers: { 'X-Correlation-Id': correlationId, 'Idempotency-Key': 'op-1' },
      body: { clientOperationId: 'op-1', body: 'a private question', contentType: 'text' },
    })
  const first = await send('first.request')
  expect((await send('second.request')).body).toEqual(first.body)
  const { messaging } = stack.operator()
  const { message } = await messaging.sendAgentMessage(
    { conversationId, clientOperationId: 'op-2', body: 'an answer', agent: { displayName: 'Ada' } },
    { headers: { 'x-correlation-id': 'of an agent?' } },
  )
  const textOf = async (messageId: string) => {
    const { code, stdout, stderr } = await explain('--message', messageId, '--conversation', conversationId)
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).not.toContain('private')
    return stdout
  }
  const text = await textOf(first.body.messageId)
  expect(text).toMatch(/has sequence \d+\. A core began to write it at \d{4}-/)
  expect(text).toContain('Its state is queued.')
  expect(text).toContain('correlation id, first.request.')
  // An id that a gateway would not accept is not stored.
  expect(await textOf(message!.messageId)).toContain('It has no correlation id')
  expect(await explain('--message', 'msg_unknown', '--conversation', conversationId)).toEqual({
    code: 1,
    stdout: '',
    stderr: `admin: conversation ${conversationId} has no message msg_unknown\n`,
  })
  // `explain` changes nothing of what it explains.
  expect(await textOf(first.body.messageId)).toContain('Its state is queued.')
  expect((await visitor.history())[0]).toMatchObject({ state: 'queued' })
  expect(JSON.stringify(await visitor.history())).not.toContain('first.request')
})

it('`explain --session` says that a page is connected, and whether it shows the chat', async () => {
  const visitor = await stack.newVisitor()
  await visitor.openStream()
  await until('the open stream', async () =>
    (await sessionText(visitor.session.sessionId)).includes('has an open stream now, but does not show the chat.'),
  )
  expect((await visitor.call('POST', '/presence', { body: { tab: 'tab-1', state: 'here' } })).status).toBe(204)
  await until('the shown chat', async () =>
    (await sessionText(visitor.session.sessionId)).includes('has an open stream now, and shows the chat.'),
  )
})

it('`explain --session` says that the session was revoked or ended by a ban', async () => {
  const { sessions } = stack.operator()
  const [revoked, banned] = [await stack.newVisitor(), await stack.newVisitor()]
  await sessions.revokeSession({ sessionId: revoked.session.sessionId })
  const revokedText = await sessionText(revoked.session.sessionId)
  expect(revokedText).toContain('An operator or a service revoked it.')
  expect(revokedText).toMatch(/demo called RevokeSession for ses_\w+ at \d{4}-/)
  const { sessionId } = banned.session
  await sessions.banVisitor({ sessionId, reason: 'a private reason' })
  const text = await sessionText(sessionId)
  expect(text).toContain('ended because the visitor was banned')
  expect(text).toMatch(/demo called BanVisitor for ses_\w+ at \d{4}-/)
  expect(text).toContain(`visitors unban --session ${sessionId}`)
  expect(text).not.toContain('a private reason')
})

it('`explain --session` names a missing consent, a removed origin and a disabled installation', async () => {
  const { workspaces } = stack.operator()
  const { siteKey } = await newSite(stack.demo.origin)
  const { session } = await stack.newVisitor({ siteKey })
  const consent = { required: true, policyUrl: 'https://shop.example/privacy', policyVersion: '7' }
  await workspaces.updateInstallation({
    siteKey,
    origins: ['https://other.example'],
    enabled: false,
    consent,
  })
  const text = await sessionText(session.sessionId)
  expect(text).toContain('allows https://other.example only')
  expect(text).toContain(`Installation ${siteKey} is disabled.`)
  expect(text).toContain('agrees to version 7 of the consent policy. There is no decision yet.')
})

it('`explain --session` names a ban of the network address, a disabled connection and a session that the visitor closed', async () => {
  const { sessions, workspaces } = stack.operator()
  const origin = 'https://shop.wild.example'
  const { connectionId, siteKey } = await newSite('https://*.wild.example')
  const [closed, open] = [await stack.newVisitor({ origin, siteKey }), await stack.newVisitor({ origin, siteKey })]
  const close = { body: { scope: 'continuity' }, headers: { 'Idempotency-Key': randomUUID() } }
  expect(await closed.call('POST', '/sessions/close', close)).toMatchObject({ status: 200 })
  expect(await sessionText(closed.session.sessionId)).toContain('It was closed')
  const { sessionId } = open.session
  // The wildcard allows the origin.
  expect(await sessionText(sessionId)).toContain('Nothing that is stored refuses this session.')
  await workspaces.updateInstallation({ siteKey, origins: ['https://*.other.example'] })
  expect(await sessionText(sessionId)).toContain(`allows https://*.other.example only. Add ${origin} to it.`)
  await workspaces.setConnectionStatus({ connectionId, status: 2 })
  const disabledText = await sessionText(sessionId)
  expect(disabledText).toContain(`Connection ${connectionId} is disabled.`)
  expect(disabledText).toMatch(/demo called SetConnectionStatus for con_\w+ at \d{4}-/)
  await sessions.banVisitor({ sessionId, reason: 'a private reason', addressBanSeconds: 3600 })
  expect(await sessionText(sessionId)).toMatch(/network address is banned until \d{4}-.*visitors unban --session/)
})

it('`explain --session` says that a session has expired', async () => {
  const short = await startLocalStack({
    database: testDatabase({ isNew: true }),
    coreEnv: { GRANT_LIFETIME_SECONDS: '2', SESSION_LIFETIME_SECONDS: '2', SESSION_RENEWABLE_SECONDS: '0' },
  })
  const { session } = await short.newVisitor()
  await until('the session has expired', async () => {
    const { stdout } = await adminHere(['explain', '--session', session.sessionId], { DATA_DIR: short.dataDir })
    return stdout.includes('It expired at')
  })
})

it('`explain --delivery` says whether the delivery waits, is held, was accepted or failed, with the facts of its attempts', async () => {
  const receiver = await startReceiver()
  const { leads } = stack.operator()
  const { workspaceId } = stack.demo
  const deliver = async (path: string) => {
    const fields = { email: 'zoe@example.com' }
    const { subscription } = await leads.createSubscription({
      workspaceId,
      destinationUrl: `${receiver.http}${path}?secret=s3cret`,
      mappedFields: ['email'],
    })
    const { subscriptionId } = subscription!
    const { leadId } = await leads.captureLead({ workspaceId, source: 'api', fields })
    const { attempt } = await leads.createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey: subscriptionId })
    return { subscriptionId, deliveryId: attempt!.deliveryId }
  }
  const textOf = async (deliveryId: string) => {
    const { code, stdout, stderr } = await explain('--delivery', deliveryId)
    expect([code, stderr]).toEqual([0, ''])
    expect(stdout).not.toMatch(/zoe|s3cret/)
    return stdout
  }
  const host = new URL(receiver.http).host
  const [accepted, refused, held] = [await deliver('/200'), await deliver('/400'), await deliver('/held')]
  expect(await textOf(accepted.deliveryId)).toContain('It waits for a worker since')
  expect(await textOf(accepted.deliveryId)).toMatch(new RegExp(`Destination sub_\\w+ is at ${host}\\.`))
  await leads.updateSubscription({ subscriptionId: held.subscriptionId, status: 2 })
  await until('the delivery is held', async () => (await textOf(held.deliveryId)).includes('It is held'))
  expect(await textOf(held.deliveryId)).toContain(`Destination ${held.subscriptionId} is disabled (operator).`)
  await startLocalWorker(stack)
  await until('the accepted delivery', async () => (await textOf(accepted.deliveryId)).includes('accepted it at'))
  expect(await textOf(accepted.deliveryId)).toMatch(
    /Attempt 1 ended at .*: accepted, status 200, \d+ ms; correlation id /,
  )
  await until('the failed delivery', async () => (await textOf(refused.deliveryId)).includes('It failed for good'))
  expect(await textOf(refused.deliveryId)).toMatch(/status 400[\s\S]*deliveries retry --attempt att_/)
  const large = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`f${index}`, 'x'.repeat(4000)]))
  const { subscription } = await leads.createSubscription({
    workspaceId,
    destinationUrl: `${receiver.http}/200`,
    mappedFields: Object.keys(large),
    automatic: true,
  })
  const { subscriptionId } = subscription!
  await leads.captureLead({ workspaceId, source: 'api', fields: large })
  const found = await until('the delivery that is too large', async () => {
    const { deliveries } = await leads.listDeliveries({ workspaceId, subscriptionId })
    return deliveries[0]
  })
  const tooLarge = await textOf(found.deliveryId)
  expect(tooLarge).toContain('Nothing was sent, because its body would be larger than 64 KiB.')
  expect(tooLarge).not.toContain('deliveries retry')
})

it('`explain --delivery` names the next retry, the end of the schedule or a suppressed person, and fails if the destination was deleted', async () => {
  const receiver = await startReceiver()
  const { leads, workspaces } = stack.operator()
  const { workspaceId } = stack.demo
  const { subscription } = await leads.createSubscription({
    workspaceId,
    destinationUrl: `${receiver.http}/503`,
    mappedFields: ['email'],
  })
  const { subscriptionId } = subscription!
  const deliver = async (email: string) => {
    const { leadId } = await leads.captureLead({ workspaceId, source: 'api', fields: { email } })
    const { attempt } = await leads.createDeliveryAttempt({ leadId, subscriptionId, idempotencyKey: randomUUID() })
    return attempt!.deliveryId
  }
  const deliveryId = await deliver('ann@example.com')
  const retry = async (id: string) => {
    const { attempts } = await leads.listDeliveryAttempts({ deliveryId: id })
    await leads.retryDeliveryAttempt({ attemptId: attempts.at(-1)!.attemptId, idempotencyKey: randomUUID() })
  }
  const says = (id: string, part: string) =>
    until(part, async () => (await explain('--delivery', id)).stdout.includes(part))
  await says(deliveryId, 'The next one is due at')
  expect((await explain('--delivery', deliveryId)).stdout).toContain(`Every attempt to destination ${subscriptionId}`)
  for (let number = 2; number <= 9; number += 1) {
    await retry(deliveryId)
    await says(deliveryId, number < 9 ? `Attempt ${number} ended at` : 'Every attempt of the schedule failed.')
  }
  const suppressed = await deliver('bob@example.com')
  await says(suppressed, 'The next one is due at')
  await workspaces.addSuppressions({ workspaceId, entries: [{ of: { case: 'email', value: 'bob@example.com' } }] })
  await says(suppressed, 'the person is on the suppression list')
  await leads.deleteSubscription({ subscriptionId })
  expect(await explain('--delivery', deliveryId)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('NotFound'),
  })
})

it('`explain` shows nothing to a token of another workspace or without the scope', async () => {
  const { session } = await stack.newVisitor()
  const secrets = JSON.parse(await readFile(join(stack.dataDir, 'secrets.json'), 'utf8'))
  const access = createAccess(createKeyring(parseSecretKeys(secrets.secretKeys)), Date.now)
  const explainAs = async (grants: { scopes: string[]; workspaceId?: string }) => {
    const token = await access.issue({ subject: 'test', ...grants })
    return adminHere(['explain', '--session', session.sessionId], {
      CORE_URL: stack.cores[0]!.url,
      SERVICE_TOKEN: token,
    })
  }
  const scopes = ['sessions:read', 'workspaces:read']
  expect(await explainAs({ scopes, workspaceId: 'ws_other' })).toMatchObject({ code: 1, stdout: '' })
  expect(await explainAs({ scopes: ['leads:read'] })).toMatchObject({ code: 1, stdout: '' })
})

it('`explain` refuses an unknown id with exit code 1, and no or two ids with 2', async () => {
  for (const args of [
    ['--session', 'ses_unknown'],
    ['--delivery', 'dlv_unknown'],
    ['--message', 'msg_unknown', '--conversation', 'cnv_unknown'],
  ]) {
    expect(await explain(...args)).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining('NotFound') })
  }
  expect((await explain('--session', 'ses_unknown')).stderr).toBe(
    'admin: the core answered NotFound. Check --session ses_unknown, and whether the token may read it\n',
  )
  expect(await explain('--session', 'ses_unknown', '--json')).toMatchObject({ code: 2, stdout: '' })
  for (const args of [[], ['--session', 'ses_1', '--delivery', 'dlv_1'], ['--message', 'msg_1']]) {
    expect(await explain(...args)).toMatchObject({
      code: 2,
      stderr: 'admin: give --session, --delivery, or --message with its --conversation\n',
    })
  }
})

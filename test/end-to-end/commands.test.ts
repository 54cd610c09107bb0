import { createHash, randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { request } from 'node:http'
import { ConnectError } from '@connectrpc/connect'
import { MongoClient } from 'mongodb'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ErrorInfoSchema } from '#proto/error/v1/error_pb.js'
import { imageOf } from '../support/images.ts'
import { type Operator, operatorOf } from '../support/operator.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { type EventStream, startVisitor, type Visitor } from '../support/visitor.ts'

const database = testDatabase()
const maxBytes = 5 * 1024 * 1024
let stack: Stack
let operator: Operator
const mongo = new MongoClient(database.uri).connect()
afterAll(async () => (await mongo).close())

beforeAll(async () => {
  stack = await startStack({ database, cores: 2, gateways: 2, env: { RATE_LIMIT_FACTOR: '1000' } })
  operator = operatorOf(stack.cores[1]!.url, stack.demo.serviceToken)
})

const newVisitor = (): Promise<Visitor> =>
  startVisitor({ gatewayUrl: stack.gateways[0]!.url, origin: stack.demo.origin, siteKey: stack.demo.siteKey })

function post(visitor: Visitor, path: string, body: unknown, headers: Record<string, string> = {}) {
  return visitor.call('POST', `/commands${path}`, {
    body,
    headers: { 'Idempotency-Key': randomUUID(), ...headers },
    via: stack.gateways[headers['X-Gateway'] === '1' ? 1 : 0]!.url,
  })
}

const acknowledge = (visitor: Visitor, commandId: string, outcome: string, headers?: Record<string, string>) =>
  post(visitor, `/navigation/${commandId}/acknowledgements`, { outcome }, headers)

const consent = (visitor: Visitor, requestId: string, answer: string, headers?: Record<string, string>) =>
  post(visitor, `/screenshots/${requestId}/acknowledgements`, { consent: answer }, headers)

const upload = (visitor: Visitor, requestId: string, bytes: Uint8Array, headers: Record<string, string> = {}) =>
  post(visitor, `/screenshots/${requestId}/upload`, bytes, { 'Content-Type': 'image/png', ...headers })

const eventOf = (stream: EventStream, type: string) =>
  until(type, () => stream.events.find((event) => event.type === type))

async function requestScreenshot({ session }: Visitor, purpose = 'To see the error'): Promise<string> {
  const { command } = await operator.commands.requestScreenshot({ sessionId: session.sessionId, purpose })
  return command!.commandId
}

async function grantedScreenshot(visitor: Visitor): Promise<string> {
  const requestId = await requestScreenshot(visitor)
  expect((await consent(visitor, requestId, 'granted')).status).toBe(200)
  return requestId
}

async function requestNavigation({ session }: Visitor, path = '/pricing'): Promise<string> {
  const url = `${stack.demo.origin}${path}`
  const { command } = await operator.commands.requestNavigation({ sessionId: session.sessionId, url })
  return command!.commandId
}

async function download(commandId: string): Promise<{ bytes: Buffer; contentType: string; sha256: string }> {
  const chunks: Uint8Array[] = []
  let header: { contentType: string; sha256: string } | undefined
  for await (const { part } of operator.commands.getScreenshot({ commandId })) {
    if (part.case === 'header') header = part.value
    if (part.case === 'chunk') chunks.push(part.value)
  }
  return { bytes: Buffer.concat(chunks), contentType: header!.contentType, sha256: header!.sha256 }
}

/** Error code of an operator's failed call. */
async function codeOf(call: Promise<unknown>): Promise<string> {
  const error = await call.then(
    () => undefined,
    (reason) => ConnectError.from(reason),
  )
  return error?.findDetails(ErrorInfoSchema)[0]?.code ?? `none (${error?.message})`
}

describe('a navigation request', () => {
  it('is sent to the streams of its session only, then accepted and completed', async () => {
    const visitor = await newVisitor()
    const other = await newVisitor()
    const [stream, others] = [await visitor.openStream(), await other.openStream()]
    const { command } = await operator.commands.requestNavigation({
      sessionId: visitor.session.sessionId,
      url: `${stack.demo.origin}/pricing?plan=pro#yearly`,
      label: 'Our prices',
    })
    expect(command).toMatchObject({ state: 'requested', requestedBy: 'demo', label: 'Our prices' })
    const { commandId } = command!
    const shown = await eventOf(stream, 'navigation.requested')
    expect(shown.data).toEqual({
      commandId,
      url: `${stack.demo.origin}/pricing?plan=pro#yearly`,
      label: 'Our prices',
      expiresAt: expect.stringMatching(/^\d{4}-.*Z$/),
    })
    expect(Date.parse(shown.data.expiresAt) - Date.now()).toBeGreaterThan(100_000)

    const accepted = await acknowledge(visitor, commandId, 'accepted')
    expect([accepted.status, accepted.body]).toEqual([200, { commandId, state: 'accepted' }])
    const again = await acknowledge(visitor, commandId, 'accepted', { 'X-Gateway': '1' })
    expect([again.status, again.body]).toEqual([200, { commandId, state: 'accepted' }])
    expect((await acknowledge(visitor, commandId, 'completed')).body).toEqual({ commandId, state: 'completed' })
    const late = await acknowledge(visitor, commandId, 'failed')
    expect([late.status, late.body.code]).toEqual([409, 'CommandAlreadyResolved'])

    const { command: record } = await operator.commands.getCommand({ commandId })
    expect(record).toMatchObject({ state: 'completed', outcome: 'completed', requestedBy: 'demo' })
    expect(record!.transitions.map(({ state, by }) => `${state} by ${by}`)).toEqual([
      'requested by demo',
      'accepted by visitor',
      'completed by visitor',
    ])
    expect(record!.resolvedAt).toBeDefined()
    const { commands } = await operator.commands.listCommands({ sessionId: visitor.session.sessionId })
    expect(commands.map((each) => each.commandId)).toEqual([commandId])
    expect(others.events).toEqual([])
    stream.close()
    others.close()
  })

  it('creates one command and one event when repeated, and rejects different input for the same operation', async () => {
    const visitor = await newVisitor()
    const { sessionId } = visitor.session
    const rival = operatorOf(stack.cores[0]!.url, stack.demo.serviceToken)
    const input = { sessionId, url: `${stack.demo.origin}/a`, clientOperationId: 'op-1' }
    const answers = await Promise.all(
      [operator, rival, operator, rival].map(({ commands }) => commands.requestNavigation(input)),
    )
    expect(new Set(answers.map(({ command }) => command!.commandId)).size).toBe(1)
    expect(answers.filter(({ replayed }) => replayed)).toHaveLength(3)
    const stream = await visitor.openStream({ after: 0 })
    await eventOf(stream, 'navigation.requested')
    await visitor.send('the end')
    await eventOf(stream, 'message.accepted')
    expect(stream.events.map(({ type }) => type)).toEqual(['navigation.requested', 'message.accepted'])
    const other = { ...input, url: `${stack.demo.origin}/b` }
    expect(await codeOf(operator.commands.requestNavigation(other))).toBe('IdempotencyConflict')
    stream.close()
  })

  it('sends an event when cancelled and can no longer be accepted', async () => {
    const visitor = await newVisitor()
    const stream = await visitor.openStream()
    const commandId = await requestNavigation(visitor)
    for (let times = 0; times < 2; times += 1) {
      expect((await operator.commands.cancelCommand({ commandId })).command?.state).toBe('cancelled')
    }
    expect((await eventOf(stream, 'navigation.cancelled')).data).toEqual({ commandId })
    const refused = await acknowledge(visitor, commandId, 'accepted')
    expect([refused.status, refused.body.code]).toEqual([409, 'CommandAlreadyResolved'])
    expect(stream.events.map(({ type }) => type)).toEqual(['navigation.requested', 'navigation.cancelled'])
    stream.close()
  })

  it.each([
    ['a script', 'javascript:alert(1)', 'origin'],
    ['another origin', 'https://evil.example/login', 'origin'],
    ['the same host on another port', 'http://localhost:1/', 'origin'],
    ['a host that starts with an allowed host', 'http://localhost.evil.example:8081/', 'origin'],
    ['a data URL', 'data:text/html,hello', 'origin'],
    ['user info', 'http://user:secret@localhost:8081/', 'format'],
    ['a script URL with a line break', 'java\nscript:alert(1)', 'format'],
    ['a backslash', 'http://localhost:8081\\@evil.example/', 'format'],
    ['a relative URL', '/pricing', 'format'],
  ])('to %s is rejected and creates no command', async (_, url, rule) => {
    const { session } = await newVisitor()
    const error = await operator.commands
      .requestNavigation({ sessionId: session.sessionId, url })
      .catch((reason) => ConnectError.from(reason))
    expect((error as ConnectError).findDetails(ErrorInfoSchema)[0]).toMatchObject({
      code: 'ValidationFailed',
      issues: [{ path: '/url', rule }],
    })
    expect((await operator.commands.listCommands({ sessionId: session.sessionId })).commands).toEqual([])
  })

  it('with a line break in its label is rejected', async () => {
    const { session } = await newVisitor()
    const url = `${stack.demo.origin}/`
    const call = operator.commands.requestNavigation({
      sessionId: session.sessionId,
      url,
      label: 'Prices\r\n\r\nevent: session.revoked',
    })
    expect(await codeOf(call)).toBe('ValidationFailed')
  })

  it('is rejected for a revoked or unknown session and with an invalid token', async () => {
    const { session } = await newVisitor()
    const url = `${stack.demo.origin}/`
    await operator.sessions.revokeSession({ sessionId: session.sessionId })
    const { sessionId } = session
    expect(await codeOf(operator.commands.requestNavigation({ sessionId, url }))).toBe('SessionRevoked')
    expect(await codeOf(operator.commands.requestNavigation({ sessionId: 'ses_none', url }))).toBe('NotFound')
    expect(await codeOf(operatorOf(stack.cores[0]!.url, 'x.y.z').commands.listCommands({ sessionId }))).toBe(
      'Unauthenticated',
    )
  })

  it('is rejected if the installation lacks the capability', async () => {
    const { workspace } = await operator.workspaces.createWorkspace({ name: 'Shy' })
    const { workspaceId } = workspace!
    const { connection } = await operator.workspaces.createConnection({ workspaceId, name: 'Site' })
    const { installation } = await operator.workspaces.createInstallation({
      connectionId: connection!.connectionId,
      origins: ['https://shy.example'],
      capabilities: { navigation: false, screenshots: false },
    })
    const { session } = await startVisitor({
      gatewayUrl: stack.gateways[0]!.url,
      origin: 'https://shy.example',
      siteKey: installation!.publicSiteKey,
    })
    const { sessionId } = session
    const navigation = operator.commands.requestNavigation({ sessionId, url: 'https://shy.example/' })
    expect(await codeOf(navigation)).toBe('RouteNotAdvertised')
    expect(await codeOf(operator.commands.requestScreenshot({ sessionId }))).toBe('RouteNotAdvertised')
  })

  it('rejects decisions and uploads after it expired', async () => {
    const visitor = await newVisitor()
    const commandId = await requestNavigation(visitor)
    const requestId = await grantedScreenshot(visitor)
    const commands = (await mongo).db(database.name).collection<{ _id: string }>('commands')
    await commands.updateMany({ _id: { $in: [commandId, requestId] } }, { $set: { expiresAt: new Date() } })
    for (const attempt of [
      await acknowledge(visitor, commandId, 'accepted'),
      await upload(visitor, requestId, imageOf('image/png', 100)),
    ]) {
      expect([attempt.status, attempt.body.code]).toEqual([410, 'CommandExpired'])
      expect(attempt.body).toMatchObject({ retryable: false, terminal: false })
    }
    expect(await codeOf(operator.commands.cancelCommand({ commandId }))).toBe('CommandExpired')
    expect((await operator.commands.getCommand({ commandId })).command?.state).toBe('expired')
  })

  it('is not found by another session or as another kind of command', async () => {
    const visitor = await newVisitor()
    const stranger = await newVisitor()
    const commandId = await requestNavigation(visitor)
    const requestId = await grantedScreenshot(visitor)
    const attempts = [
      await acknowledge(stranger, commandId, 'accepted'),
      await consent(stranger, requestId, 'denied'),
      await upload(stranger, requestId, imageOf('image/png', 100)),
      await acknowledge(visitor, requestId, 'accepted'),
      await consent(visitor, commandId, 'granted'),
      await acknowledge(visitor, 'cmd_none', 'accepted'),
    ]
    for (const { status, body } of attempts) expect([status, body.code]).toEqual([404, 'CommandNotFound'])
    expect((await operator.commands.getCommand({ commandId })).command?.state).toBe('requested')
  })

  it('repeats the answer for the same key and input, and rejects different input as a conflict', async () => {
    const visitor = await newVisitor()
    const commandId = await requestNavigation(visitor)
    const key = { 'Idempotency-Key': randomUUID() }
    expect((await acknowledge(visitor, commandId, 'accepted', key)).status).toBe(200)
    await acknowledge(visitor, commandId, 'completed')
    const repeated = await acknowledge(visitor, commandId, 'accepted', { ...key, 'X-Gateway': '1' })
    expect([repeated.status, repeated.body]).toEqual([200, { commandId, state: 'accepted' }])
    expect(repeated.headers.get('idempotency-replayed')).toBe('true')
    const other = await acknowledge(visitor, commandId, 'declined', key)
    expect([other.status, other.body.code]).toEqual([409, 'IdempotencyConflict'])
    const unknownField = await post(visitor, `/navigation/${commandId}/acknowledgements`, { outcome: 'failed', x: 1 })
    expect([unknownField.status, unknownField.body.code]).toEqual([400, 'ValidationFailed'])
  })
})

describe('a screenshot request', () => {
  it('is granted, uploaded, and downloaded unchanged', async () => {
    const visitor = await newVisitor()
    const stream = await visitor.openStream()
    const requestId = await requestScreenshot(visitor, 'To see the error')
    const shown = await eventOf(stream, 'screenshot.requested')
    expect(shown.data).toMatchObject({ requestId, purpose: 'To see the error' })

    const granted = await consent(visitor, requestId, 'granted')
    expect(granted.body).toEqual({
      requestId,
      state: 'granted',
      upload: {
        maxBytes,
        contentTypes: ['image/png', 'image/jpeg', 'image/webp'],
        expiresAt: expect.stringMatching(/Z$/),
      },
    })
    const bytes = imageOf('image/png', maxBytes)
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    const uploaded = await upload(visitor, requestId, bytes)
    expect([uploaded.status, uploaded.body]).toEqual([
      201,
      { requestId, state: 'uploaded', byteLength: maxBytes, sha256 },
    ])
    const back = await download(requestId)
    expect(back.bytes.equals(bytes)).toBe(true)
    expect(back).toMatchObject({ contentType: 'image/png', sha256 })
    const { command } = await operator.commands.getCommand({ commandId: requestId })
    expect(command).toMatchObject({ state: 'uploaded', outcome: 'granted', byteLength: maxBytes, sha256 })
    expect(command!.transitions.map(({ state, by }) => `${state} by ${by}`)).toEqual([
      'requested by demo',
      'granted by visitor',
      'uploaded by visitor',
    ])
    stream.close()
  })

  it.each(['image/jpeg', 'image/webp'] as const)('accepts %s', async (type) => {
    const visitor = await newVisitor()
    const requestId = await grantedScreenshot(visitor)
    const bytes = imageOf(type, 300_000)
    expect((await upload(visitor, requestId, bytes, { 'Content-Type': type })).status).toBe(201)
    const back = await download(requestId)
    expect([back.contentType, back.bytes.equals(bytes)]).toEqual([type, true])
  })

  it('is uploaded once: a repeat gets the same answer, other bytes or another key a conflict', async () => {
    const visitor = await newVisitor()
    const requestId = await grantedScreenshot(visitor)
    const bytes = imageOf('image/png', 600_000)
    const key = { 'Idempotency-Key': randomUUID() }
    const first = await upload(visitor, requestId, bytes, key)
    const again = await upload(visitor, requestId, bytes, { ...key, 'X-Gateway': '1' })
    expect([again.status, again.body]).toEqual([201, first.body])
    expect(again.headers.get('idempotency-replayed')).toBe('true')
    const other = await upload(visitor, requestId, imageOf('image/png', 600_000), key)
    expect([other.status, other.body.code]).toEqual([409, 'IdempotencyConflict'])
    const late = await upload(visitor, requestId, bytes)
    expect([late.status, late.body.code]).toEqual([409, 'CommandAlreadyResolved'])
    expect((await download(requestId)).bytes.equals(bytes)).toBe(true)
  })

  it('keeps one of two concurrent uploads and removes the other', async () => {
    const visitor = await newVisitor()
    const requestId = await grantedScreenshot(visitor)
    const images = [0, 1].map(() => imageOf('image/png', 2_000_000))
    const answers = await Promise.all(
      images.map((bytes, index) => upload(visitor, requestId, bytes, { 'X-Gateway': String(index) })),
    )
    expect(answers.map(({ status }) => status).sort()).toEqual([201, 409])
    const winner = answers.findIndex(({ status }) => status === 201)
    expect((await download(requestId)).bytes.equals(images[winner]!)).toBe(true)
    expect(await filesOf(requestId)).toMatchObject({ files: 1, uploads: [] })
  })

  it.each([
    ['undecided', undefined],
    ['denied', 'denied'],
    ['unsupported', 'unsupported'],
  ])('that is %s rejects uploads of any size', async (_, answer) => {
    const visitor = await newVisitor()
    const requestId = await requestScreenshot(visitor)
    if (answer) await consent(visitor, requestId, answer)
    for (const size of [100, maxBytes]) {
      const refused = await upload(visitor, requestId, imageOf('image/png', size))
      expect([refused.status, refused.body.code]).toEqual([403, 'ConsentRequired'])
    }
    expect(await codeOf(download(requestId))).toBe('NotFound')
    expect(await filesOf(requestId)).toMatchObject({ files: 0, uploads: [] })
  })

  it.each([
    ['another type', 'image/gif', () => imageOf('image/png', 100), 415, 'UnsupportedMediaType', undefined],
    ['JSON', 'application/json', () => imageOf('image/png', 100), 415, 'UnsupportedMediaType', undefined],
    [
      'bytes of another type',
      'image/jpeg',
      () => imageOf('image/png', 400_000),
      400,
      'ValidationFailed',
      'contentType',
    ],
    [
      'an HTML page',
      'image/png',
      () => Buffer.from('<!doctype html><script>alert(1)</script>'),
      400,
      'ValidationFailed',
      'contentType',
    ],
    ['a truncated header', 'image/webp', () => Buffer.from('RIFF'), 400, 'ValidationFailed', 'contentType'],
    ['an empty body', 'image/png', () => Buffer.alloc(0), 400, 'ValidationFailed', 'contentType'],
    ['one byte too many', 'image/png', () => imageOf('image/png', maxBytes + 1), 413, 'PayloadTooLarge', undefined],
  ])('rejects %s and still accepts a valid upload', async (_, type, bytes, status, code, rule) => {
    const visitor = await newVisitor()
    const requestId = await grantedScreenshot(visitor)
    const refused = await upload(visitor, requestId, bytes(), { 'Content-Type': type })
    expect([refused.status, refused.body.code]).toEqual([status, code])
    if (rule) expect(refused.body.issues).toEqual([{ path: '', rule }])
    expect(await filesOf(requestId)).toMatchObject({ files: 0, chunks: 0, uploads: [] })
    expect((await upload(visitor, requestId, imageOf('image/png', 100))).status).toBe(201)
  })

  it('rejects an oversized chunked body and removes its chunks', async () => {
    const visitor = await newVisitor()
    const requestId = await grantedScreenshot(visitor)
    const { call, answer } = startUpload(visitor, requestId, { 'transfer-encoding': 'chunked' })
    const bytes = imageOf('image/png', maxBytes + 1)
    for (let from = 0; from < bytes.length; from += 500_000) call.write(bytes.subarray(from, from + 500_000))
    call.end()
    const { status, body } = await answer
    expect([status, body.code]).toEqual([413, 'PayloadTooLarge'])
    await until('the clean-up', async () => (await filesOf(requestId)).uploads.length === 0)
    expect(await filesOf(requestId)).toMatchObject({ files: 0, chunks: 0, uploads: [] })
  })

  it.each([
    ['a length', { 'content-length': '2000000' }],
    ['no length', { 'transfer-encoding': 'chunked' }],
  ])('removes an aborted upload with %s and accepts the next one', async (_, headers) => {
    const visitor = await newVisitor()
    const requestId = await grantedScreenshot(visitor)
    const { call, answer } = startUpload(visitor, requestId, headers)
    call.write(imageOf('image/png', 1_000_000))
    await until('the first chunks', async () => (await filesOf(requestId)).chunks >= 2)
    call.destroy()
    await answer.catch(() => {})
    await until('the clean-up', async () => (await filesOf(requestId)).uploads.length === 0)
    expect(await filesOf(requestId)).toMatchObject({ files: 0, chunks: 0 })
    expect((await operator.commands.getCommand({ commandId: requestId })).command?.state).toBe('granted')
    expect((await upload(visitor, requestId, imageOf('image/png', 1_000_000))).status).toBe(201)
  })

  it('does not log screenshot content or its purpose', async () => {
    const visitor = await newVisitor()
    const requestId = await requestScreenshot(visitor, 'purpose-never-logged')
    await consent(visitor, requestId, 'granted')
    const bytes = Buffer.concat([imageOf('image/png', 100), Buffer.from('pixels-never-logged')])
    await upload(visitor, requestId, bytes, { 'Content-Type': 'image/jpeg' })
    await upload(visitor, requestId, bytes)
    const written = [...stack.cores, ...stack.gateways].map((part) => part.process().output()).join('')
    expect(written).not.toMatch(/never-logged/)
  })
})

/** Counts stored files, chunks without a file, and registered uploads of one screenshot. */
async function filesOf(requestId: string): Promise<{ files: number; chunks: number; uploads: unknown[] }> {
  const client = await mongo
  const db = client.db(database.name)
  const command = await db
    .collection<{ _id: string; uploads: { fileId: string }[] }>('commands')
    .findOne({ _id: requestId })
  const files = await db.collection('screenshots.files').find({ filename: requestId }).toArray()
  const named = command!.uploads.map(({ fileId }) => fileId)
  const chunks = await db
    .collection('screenshots.chunks')
    .find({}, { projection: { files_id: 1 } })
    .toArray()
  const known = new Set((await db.collection('screenshots.files').find().toArray()).map(({ _id }) => _id.toHexString()))
  // Chunks without a file belong to an unfinished or abandoned upload.
  const loose = chunks.filter(({ files_id }) => !known.has(files_id.toHexString()))
  return { files: files.length, chunks: loose.length, uploads: named }
}

function startUpload(visitor: Visitor, requestId: string, headers: Record<string, string>) {
  const call = request(
    `${stack.gateways[0]!.url}/api/integrations/v1/widget/commands/screenshots/${requestId}/upload`,
    {
      method: 'POST',
      headers: {
        origin: stack.demo.origin,
        'x-service-widget-version': '1.0',
        authorization: `Bearer ${visitor.session.accessGrant}`,
        'idempotency-key': randomUUID(),
        'content-type': 'image/png',
        ...headers,
      },
    },
  )
  const answer = (async () => {
    const [response] = await once(call, 'response')
    let text = ''
    for await (const chunk of response.setEncoding('utf8')) text += chunk
    return { status: response.statusCode as number, body: JSON.parse(text) }
  })()
  answer.catch(() => {})
  return { call, answer }
}

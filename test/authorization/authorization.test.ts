import { createHash } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import { type DescMessage, ScalarType } from '@bufbuild/protobuf'
import { MongoClient } from 'mongodb'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startTestCores, type TestCores } from '../../core/test/cores.ts'
import { servedMethods } from '../../core/test/operator-calls.ts'
import { type Operation, operationsOf } from '../fuzz/route-cases.ts'
import { useLocalStack } from '../support/local-stack.ts'
import { type TestDatabase, testDatabase } from '../support/test-database.ts'
import { until } from '../support/until.ts'
import { dataSources, type ShownData, walkData } from './data-matrix.ts'
import { authorizationDocument } from './document.ts'
import { type Fixtures, newFixtures } from './fixtures.ts'
import { type Row, walkRoutes } from './matrix.ts'
import { methodWalk } from './rpc-matrix.ts'

const database = testDatabase()
const coresDatabase = testDatabase()
const client = new MongoClient(database.uri)
let fixtures: Fixtures
let operations: Operation[]
let cores: TestCores
let data: ShownData
let methods: Map<string, Row>

const stack = useLocalStack({ database, env: { RATE_LIMIT_FACTOR: '1000' } })
beforeAll(async () => {
  fixtures = await newFixtures(stack)
  operations = operationsOf(await (await fetch(`${stack.gateways[0]!.url}/docs/openapi.json`)).json())
  cores = await startTestCores(coresDatabase)
})
afterAll(async () => {
  await cores.stop()
  await client.close()
})

const walk = (selected: Operation[], which: 'unauthorized' | 'authorized') =>
  walkRoutes(stack.gateways[0]!.url, selected, fixtures, ({ name, acceptedBy = [] }, route) => {
    const isAccepted = name === 'itself' || acceptedBy.includes(route)
    return isAccepted === (which === 'authorized')
  })

/** Collections that cores write in the background, such as the last use of tokens. Search entries are derived. */
const background = ['wakeups', 'searchEntries', 'followers', 'feedEntries', 'tokens']

/** Fields that the retention's sweep of a workspace and the event feed change at any time. */
const ownFields = {
  sweepAt: 0,
  sweepToken: 0,
  sweepAfter: 0,
  unannounced: 0,
  announcedAttempts: 0,
  handoff: 0,
  followedTo: 0,
}

/** Returns hashes of all stored documents, except those that cores write in the background. */
async function stateOf({ name }: TestDatabase): Promise<Record<string, string>> {
  const collections = await client.db(name).collections()
  const documents = await Promise.all(
    collections
      .filter(({ collectionName }) => !background.includes(collectionName))
      .map(async (collection) =>
        (await collection.find({}, { projection: ownFields }).toArray()).map((document): [string, string] => [
          `${collection.collectionName} ${document._id}`,
          createHash('sha256').update(JSON.stringify(document)).digest('hex'),
        ]),
      ),
  )
  return Object.fromEntries(documents.flat())
}

/** Returns the state of a database after writes in the background have ended. */
async function quietStateOf(database: TestDatabase) {
  let last = ''
  return until('a database without pending writes', async () => {
    const state = await stateOf(database)
    const isQuiet = JSON.stringify(state) === last
    last = JSON.stringify(state)
    await delay(isQuiet ? 0 : 500)
    return isQuiet ? state : undefined
  })
}

/** Returns true if `lastSequence` of each conversation has reached the sequence of its last message. */
async function activityIsStored(): Promise<boolean> {
  const db = client.db(database.name)
  const conversations = await db.collection('conversations').find().toArray()
  const ends = await db
    .collection('events')
    .aggregate([
      { $match: { type: { $in: ['message.accepted', 'message.received'] } } },
      { $group: { _id: '$conversationId', sequence: { $max: '$sequence' } } },
    ])
    .toArray()
  const stored = new Map<unknown, number>(conversations.map(({ _id, lastSequence }) => [_id, lastSequence]))
  return ends.every(({ _id, sequence }) => (stored.get(_id) ?? 0) >= sequence)
}

// biome-ignore lint/suspicious/noExplicitAny: the OpenAPI document is untyped
const needs = (credential: string | undefined) => (operation: any) =>
  credential === undefined
    ? operation.description.security.length === 0
    : operation.description.security[0]?.[credential] !== undefined

it('internal methods refuse every other caller without changing a stored document', async () => {
  const walk = await methodWalk(cores)
  const before = await quietStateOf(coresDatabase)
  methods = await walk()
  expect(await stateOf(coresDatabase)).toEqual(before)
  const answered = [...methods].filter(([, row]) => Object.values(row).includes('answered'))
  expect(answered).toEqual([])
})

it('methods for operators show only data that the caller’s scopes cover', async () => {
  data = await walkData(cores)
  expect(data.leaks).toEqual([])
  // Every kind of data is shown to a caller with every scope.
  expect(new Set([...data.shown.values()].flat())).toEqual(new Set(Object.keys(dataSources)))
})

it('routes reject unauthorized callers without changing a stored document', async () => {
  const scoped = operations.filter((operation) => !needs(undefined)(operation))
  // A core updates `lastSequence` of a conversation shortly after it has stored the message.
  const before = await until(
    'a database without pending writes',
    async () => (await activityIsStored()) && stateOf(database),
  )
  const rejected = await walk(scoped, 'unauthorized')
  expect(await stateOf(database)).toEqual(before)
  const leaks = [...rejected].flatMap(([route, row]) =>
    Object.entries(row).flatMap(([caller, answer]) => (answer === 'answered' ? [`${route} accepts ${caller}`] : [])),
  )
  expect(leaks).toEqual([])
  const cases = [...rejected.values()].reduce((sum, row) => sum + Object.keys(row).length, 0)
  expect(cases).toBeGreaterThan(200)

  const allowed = await walk(operations, 'authorized')
  const merged = (selected: Operation[]) =>
    new Map([...names(selected)].map((name): [string, Row] => [name, { ...rejected.get(name), ...allowed.get(name) }]))
  const open = operations.filter(needs(undefined))
  const document = authorizationDocument({
    visitors: merged(operations.filter(needs('accessGrant'))),
    operators: merged(operations.filter(needs('workspaceSession'))),
    open: await walkRoutes(stack.gateways[0]!.url, open, fixtures, () => true),
    methods,
    shown: data.shown,
  })
  await expect(document).toMatchFileSnapshot('../../docs/authorization.md')
})

const names = (selected: Operation[]) =>
  selected.map(({ method, path }) => `${method} ${path.replace('/api/integrations/v1/widget', '')}`)

/** Returns `Service.Method field` for each text of an answer that is named like a credential. */
function shownCredentials(): string[] {
  const fieldsOf = (message: DescMessage, seen = new Set<DescMessage>()): string[] => {
    if (seen.has(message)) return []
    seen.add(message)
    return message.fields.flatMap((field) => {
      if (field.message) return fieldsOf(field.message, seen)
      const isText = field.scalar === ScalarType.STRING || field.scalar === ScalarType.BYTES
      return isText && /^(?!nextPageToken|secretId|tokenId).*(grant|token|secret|password)/i.test(field.localName)
        ? [field.localName]
        : []
    })
  }
  return servedMethods()
    .flatMap(([name, { output }]) => [...new Set(fieldsOf(output))].map((field) => `${name} ${field}`))
    .toSorted()
}

it('only methods that create, renew or sign in answer with a credential', () => {
  expect(shownCredentials()).toEqual([
    'ConsoleService.BeginPasskeySignIn browserSecret',
    'ConsoleService.BeginProviderSignIn browserSecret',
    'ConsoleService.CreateSignInLink secret',
    'ConsoleService.FinishPasskeySignIn sessionSecret',
    'ConsoleService.FinishProviderSignIn sessionSecret',
    'ConsoleService.SignIn sessionSecret',
    'HookService.CreateHook secret',
    'HookService.RotateHookSecret secret',
    'LeadService.CreateSubscription secret',
    'LeadService.RotateSubscriptionSecret secret',
    'OperatorService.InviteOperator secret',
    'SessionService.ClearIdentity accessGrant',
    'SessionService.ClearIdentity renewalToken',
    'SessionService.CreateSession accessGrant',
    'SessionService.CreateSession renewalToken',
    'SessionService.IdentifyVisitor accessGrant',
    'SessionService.IdentifyVisitor renewalToken',
    'SessionService.RenewSession accessGrant',
    'SessionService.RenewSession renewalToken',
    'WorkspaceService.CreateInstallation secret',
    'WorkspaceService.RotateIdentitySecret secret',
  ])
})

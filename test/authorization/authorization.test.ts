import { createHash } from 'node:crypto'
import { MongoClient } from 'mongodb'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { startTestCores, type TestCores } from '../../core/test-core-context.ts'
import { type Operation, operationsOf } from '../fuzz/route-cases.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { testDatabase } from '../support/test-database.ts'
import { authorizationDocument } from './document.ts'
import { type Row, walkRoutes } from './matrix.ts'
import { walkMethods } from './rpc-matrix.ts'
import { newWorld, type World } from './world.ts'

const database = testDatabase()
const coresDatabase = testDatabase()
const client = new MongoClient(database.uri)
let stack: Stack
let world: World
let operations: Operation[]
let cores: TestCores

beforeAll(async () => {
  stack = await startStack({ database, env: { RATE_LIMIT_FACTOR: '1000' } })
  world = await newWorld(stack)
  operations = operationsOf(await (await fetch(`${stack.gateways[0]!.url}/docs/openapi.json`)).json())
  cores = await startTestCores(coresDatabase)
})
afterAll(async () => {
  await cores.stop()
  await client.close()
})

const walk = (some: Operation[], which: 'wrong' | 'right') =>
  walkRoutes(stack.gateways[0]!.url, some, world, ({ name }) => (name === 'itself') === (which === 'right'))

/** What is written of anybody, but for the notes that cores leave each other. */
async function everything(): Promise<Record<string, string>> {
  const collections = await client.db(database.name).collections()
  const documents = await Promise.all(
    collections
      .filter(({ collectionName }) => collectionName !== 'wakeups')
      .map(async (collection) =>
        (await collection.find().toArray()).map((document): [string, string] => [
          `${collection.collectionName} ${document._id}`,
          createHash('sha256').update(JSON.stringify(document)).digest('hex'),
        ]),
      ),
  )
  return Object.fromEntries(documents.flat())
}

// biome-ignore lint/suspicious/noExplicitAny: the OpenAPI document says what it says
const needs = (credential: string | undefined) => (operation: any) =>
  credential === undefined
    ? operation.description.security.length === 0
    : operation.description.security[0]?.[credential] !== undefined

it('nobody gets in where they do not belong, and nothing is changed by trying', { timeout: 180_000 }, async () => {
  const scoped = operations.filter((operation) => !needs(undefined)(operation))
  const before = await everything()
  const refused = await walk(scoped, 'wrong')
  expect(await everything()).toEqual(before)
  const through = [...refused].flatMap(([route, row]) =>
    Object.entries(row).flatMap(([party, answer]) => (answer === 'answered' ? [`${route} lets through ${party}`] : [])),
  )
  expect(through).toEqual([])
  const cases = [...refused.values()].reduce((sum, row) => sum + Object.keys(row).length, 0)
  expect(cases).toBeGreaterThan(200)

  const allowed = await walk(operations, 'right')
  const merged = (some: Operation[]) =>
    new Map([...names(some)].map((name): [string, Row] => [name, { ...refused.get(name), ...allowed.get(name) }]))
  const open = operations.filter(needs(undefined))
  const document = authorizationDocument({
    visitors: merged(operations.filter(needs('accessGrant'))),
    operators: merged(operations.filter(needs('workspaceSession'))),
    open: await walkRoutes(stack.gateways[0]!.url, open, world, () => true),
    methods: await walkMethods(cores),
  })
  await expect(document).toMatchFileSnapshot('../../docs/authorization.md')
})

const names = (some: Operation[]) =>
  some.map(({ method, path }) => `${method} ${path.replace('/api/integrations/v1/widget', '')}`)

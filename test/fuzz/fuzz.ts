import fc from 'fast-check'
import { servedMethods } from '../../core/test/operator-calls.ts'
import { type DocumentCheck, loadDocument } from '../conformance/document-check.ts'
import type { RunningStack } from '../support/stack.ts'
import { resetProblems, routeProblems, rpcProblems } from './answer-checks.ts'
import { deletable, newFixtures, restoreSite } from './fixtures.ts'
import { bytesOf, sendRaw } from './raw-client.ts'
import { operationsOf, routeCases, strangeRequests } from './route-cases.ts'
import { rpcCases } from './rpc-cases.ts'
import { createRpcClient } from './rpc-client.ts'

export interface Finding {
  /** Route, for example `POST …/messages`, or name of the RPC method. */
  where: string
  seed: number
  problems: string[]
  /** Text of the request, so that the finding can be reproduced. */
  request: string
}

export interface FuzzReport {
  routes: number
  methods: number
  cases: number
  /** Number of responses by status. */
  statuses: Record<string, number>
  findings: Finding[]
}

export interface FuzzOptions {
  stack: RunningStack
  seed: number
  /** Number of requests to generate for each route and RPC method in each round. */
  casesEach: number
  /** Called before each round. The fuzzing ends when it returns false. */
  shouldContinue: (round: number) => boolean | Promise<boolean>
}

const concurrency = 16

/** Sends hostile requests to every route of a gateway and every RPC method of a core. Checks the responses. */
export async function fuzz({ stack, seed, casesEach, shouldContinue }: FuzzOptions): Promise<FuzzReport> {
  const gatewayUrl = stack.gateways[0]!.url
  const document = await loadDocument(gatewayUrl)
  const operations = operationsOf(await (await fetch(`${gatewayUrl}/docs/openapi.json`)).json())
  const methods = servedMethods().map(([, method]) => method)
  const client = createRpcClient(stack.cores[0]!.url)
  const report: FuzzReport = {
    routes: operations.length,
    methods: methods.length,
    cases: 0,
    statuses: {},
    findings: [],
  }

  /** Runs one case and records its status and problems. */
  async function runCase(where: string, caseSeed: number, request: string, run: () => Promise<[number, string[]]>) {
    const [status, problems] = await run().catch((error: Error): [number, string[]] => [0, [error.message]])
    report.cases += 1
    report.statuses[status] = (report.statuses[status] ?? 0) + 1
    if (problems.length > 0) report.findings.push({ where, seed: caseSeed, problems, request })
  }

  /** Creates the cases of all routes. Each route gets its own session, because a case may end the session. */
  async function routeJobs(roundSeed: number) {
    const fixturesByRoute = await Promise.all([...operations, undefined].map(() => newFixtures(stack)))
    return [
      ...operations.map((operation, index) => ({
        where: `${operation.method} ${operation.path}`,
        cases: routeCases(operation, fixturesByRoute[index]!),
      })),
      { where: 'strange paths', cases: strangeRequests(operations, fixturesByRoute.at(-1)!) },
    ].flatMap(({ where, cases }, index) =>
      fc.sample(cases, { seed: roundSeed + index, numRuns: casesEach }).map((request) => () => {
        const bytes = bytesOf(request)
        return runCase(where, roundSeed, shown(bytes), () => askGateway(gatewayUrl, document, request, bytes))
      }),
    )
  }

  async function rpcJobs(roundSeed: number) {
    const fixtures = await newFixtures(stack)
    // Calls of delete methods get their own site, because they must not delete the site that all other calls use.
    const ofDeletions = await deletable(stack, fixtures)
    return methods.flatMap((method, index) =>
      fc
        .sample(rpcCases(method, method.name.startsWith('Delete') ? ofDeletions : fixtures), {
          seed: roundSeed + 1000 + index,
          numRuns: casesEach,
        })
        .map((request) => () => {
          const written = `${JSON.stringify(request.headers)} ${shown(Buffer.from(request.body))}`
          return runCase(`${method.parent.name}.${method.name}`, roundSeed, written, async () => {
            const answer = await client.call(request).catch((error: Error) => error)
            if (answer instanceof Error) return [0, resetProblems(request, answer)]
            return [answer.status, rpcProblems(answer)]
          })
        }),
    )
  }

  for (let round = 0; await shouldContinue(round); round += 1) {
    const roundSeed = seed + round * 10_000
    await restoreSite(stack)
    await inParallel(await routeJobs(roundSeed))
    await inParallel(await rpcJobs(roundSeed))
  }
  client.close()
  return report
}

async function askGateway(
  url: string,
  document: DocumentCheck,
  request: Parameters<typeof routeProblems>[0],
  bytes: Buffer,
): Promise<[number, string[]]> {
  const answer = await sendRaw(url, bytes)
  return [answer.status, routeProblems(request, answer, document)]
}

async function inParallel(work: (() => Promise<void>)[]) {
  const queue = work.values()
  await Promise.all(
    Array.from({ length: concurrency }, async () => {
      for (const each of queue) await each()
    }),
  )
}

const shown = (bytes: Buffer) => JSON.stringify(bytes.toString('latin1').slice(0, 3000))

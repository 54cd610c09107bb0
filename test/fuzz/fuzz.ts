import fc from 'fast-check'
import { servedMethods } from '../../core/test-operator-calls.ts'
import { type DocumentCheck, loadDocument } from '../conformance/document-check.ts'
import type { Stack } from '../support/stack.ts'
import { brokenOffProblems, routeProblems, rpcProblems } from './judgements.ts'
import { bytesOf, sendRaw } from './raw-client.ts'
import { operationsOf, routeCases, strangeRequests } from './route-cases.ts'
import { rpcCases } from './rpc-cases.ts'
import { createRpcClient } from './rpc-client.ts'
import { mendSite, newScene } from './scene.ts'

export interface Finding {
  /** `POST …/messages` or the method's name. */
  where: string
  seed: number
  problems: string[]
  /** To be sent again. */
  request: string
}

export interface FuzzReport {
  routes: number
  methods: number
  cases: number
  /** How many answers had which status. */
  statuses: Record<string, number>
  findings: Finding[]
}

export interface FuzzOptions {
  stack: Stack
  seed: number
  /** For each route and each method in a round. */
  casesEach: number
  /** Asked before each round. */
  goesOn: (round: number) => boolean | Promise<boolean>
}

const atOnce = 16

/** Sends what nobody should send to every route of a gateway and every method of a core, and judges what comes back. */
export async function fuzz({ stack, seed, casesEach, goesOn }: FuzzOptions): Promise<FuzzReport> {
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

  /** One case: its problems, or what kept it from an answer. */
  async function judge(where: string, caseSeed: number, request: string, run: () => Promise<[number, string[]]>) {
    const [status, problems] = await run().catch((error: Error): [number, string[]] => [0, [error.message]])
    report.cases += 1
    report.statuses[status] = (report.statuses[status] ?? 0) + 1
    if (problems.length > 0) report.findings.push({ where, seed: caseSeed, problems, request })
  }

  /** Each route has a session of its own, which its cases may end. */
  async function routeWork(roundSeed: number) {
    const scenes = await Promise.all([...operations, undefined].map(() => newScene(stack)))
    return [
      ...operations.map((operation, index) => ({
        where: `${operation.method} ${operation.path}`,
        cases: routeCases(operation, scenes[index]!),
      })),
      { where: 'strange paths', cases: strangeRequests(operations, scenes.at(-1)!) },
    ].flatMap(({ where, cases }, index) =>
      fc.sample(cases, { seed: roundSeed + index, numRuns: casesEach }).map((request) => () => {
        const bytes = bytesOf(request)
        return judge(where, roundSeed, shown(bytes), () => askGateway(gatewayUrl, document, request, bytes))
      }),
    )
  }

  async function rpcWork(roundSeed: number) {
    const scene = await newScene(stack)
    return methods.flatMap((method, index) =>
      fc
        .sample(rpcCases(method, scene), { seed: roundSeed + 1000 + index, numRuns: casesEach })
        .map((request) => () => {
          const written = `${JSON.stringify(request.headers)} ${shown(Buffer.from(request.body))}`
          return judge(`${method.parent.name}.${method.name}`, roundSeed, written, async () => {
            const answer = await client.call(request).catch((error: Error) => error)
            if (answer instanceof Error) return [0, brokenOffProblems(request, answer)]
            return [answer.status, rpcProblems(answer)]
          })
        }),
    )
  }

  for (let round = 0; await goesOn(round); round += 1) {
    const roundSeed = seed + round * 10_000
    await mendSite(stack)
    await inParallel(await routeWork(roundSeed))
    await inParallel(await rpcWork(roundSeed))
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
    Array.from({ length: atOnce }, async () => {
      for (const each of queue) await each()
    }),
  )
}

const shown = (bytes: Buffer) => JSON.stringify(bytes.toString('latin1').slice(0, 3000))

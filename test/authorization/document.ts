import { dataSources } from './data-matrix.ts'
import type { Row } from './matrix.ts'

/** Generates docs/authorization.md from the results of `walkRoutes` and `walkMethods`. */
export function authorizationDocument(tables: {
  visitors: Map<string, Row>
  operators: Map<string, Row>
  open: Map<string, Row>
  methods: Map<string, Row>
  shown: Map<string, string[]>
}): string {
  return `# Authorization

Every route of the public API and every method of the internal services, with the answer to each unauthorized caller. A test makes
these calls and writes this page from the answers (\`npm run make -- authorization\`). It also checks that no rejected call changed
a record. See [errors](errors.md) for the codes and [security](security.md) for the threats.

## Visitors' routes

Below \`/api/integrations/v1/widget\`. *Another session* and *another workspace* have a valid grant and name another visitor's
resources; routes that name none are not called (–). *Itself* is the visitor of the grant. It gets errors only where the request
is invalid: it sends no real assertion and uses forms that are not advertised. The session of *an expired grant* can still be
renewed.

${tableOf(tables.visitors)}

## Routes without a grant

${[...tables.open.keys()].map((name) => `\`${name}\``).join(', ')}:

${tableOf(tables.open)}

## Operators' routes

${tableOf(tables.operators)}

## Internal methods

All need a service token or a workspace session with the named scope. The gateway's \`/rpc\` forwards those that operators may
call, with a workspace session, and those of [bots](bots.md#from-another-network) with the token of a bot. \`visitors:act\` is for gateways only, \`deliveries:work\` for delivery workers only and
\`cores:announce\` for cores only, \`bots:act\` for bots: a workspace session never gets them, even if it claims them. A console session is a workspace session that the core stores; methods
of \`ConsoleService\` are not forwarded.

${tableOf(tables.methods)}

## Data behind scopes

A scope belongs to data, also where a method of another scope returns that data. Without the scope, a response lacks the data: a
search does not match it, a list does not count it, and a stream does not send it. The test calls each method with its own scope
only, with one more scope, and with every scope. \`visitors:export\` stands for all data of one visitor.

| Data | scope | shown by |
|---|---|---|
${dataRows(tables.shown).join('\n')}
`
}

function dataRows(shown: Map<string, string[]>): string[] {
  return Object.entries(dataSources).map(([source, { scope }]) => {
    const methods = [...shown].flatMap(([method, sources]) => (sources.includes(source) ? [`\`${method}\``] : []))
    return `| ${source} | \`${scope}\` | ${methods.sort().join(', ')} |`
  })
}

/**
 * A table with one row per route and one column per caller. A caller with the same result for every
 * route gets a sentence instead of a column.
 */
function tableOf(rows: Map<string, Row>): string {
  const callers = [...new Set([...rows.values()].flatMap(Object.keys))]
  const cells = (caller: string) => [...rows.values()].map((row) => row[caller] ?? '–')
  const uniform = callers.filter((caller) => new Set(cells(caller)).size === 1)
  const shown = callers.filter((caller) => !uniform.includes(caller))
  const sentences = uniform.map((caller) => `- ${caller}: ${codeOf(cells(caller)[0]!)}, everywhere`)
  const table = [
    `| | ${shown.join(' | ')} |`,
    `|---${'|---'.repeat(shown.length)}|`,
    ...[...rows].map(
      ([name, row]) => `| \`${name}\` | ${shown.map((caller) => codeOf(row[caller] ?? '–')).join(' | ')} |`,
    ),
  ]
  return [
    ...sentences,
    ...(sentences.length > 0 && shown.length > 0 ? [''] : []),
    ...(shown.length > 0 ? table : []),
  ].join('\n')
}

const codeOf = (cell: string) => (cell === '–' || cell === 'answered' ? cell : `\`${cell}\``)

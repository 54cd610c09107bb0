import type { Row } from './matrix.ts'

/** docs/authorization.md, from what the walks have found. */
export function authorizationDocument(tables: {
  visitors: Map<string, Row>
  operators: Map<string, Row>
  open: Map<string, Row>
  methods: Map<string, Row>
}): string {
  return `# Who gets what

Every route of the public API and every method of the internal services, with each party that has no business there. A test makes
these calls and writes this page from what came back (\`npm run docs:authorization\`); it also looks that none of the refused ones has changed a
record. What each code means stands in [errors](errors.md), what is defended against whom in [security](security.md).

## Visitors' routes

Below \`/api/integrations/v1/widget\`. *Another session* and *another workspace* bring a good grant of their own and name somebody else's things; where a
route names nothing, there is nothing to try (–). *Itself* is the visitor whose grant it is: what it is refused is refused for the request, which brings no
real assertion and asks for forms that are not advertised.

${tableOf(tables.visitors)}

## Routes without a grant

${[...tables.open.keys()].map((name) => `\`${name}\``).join(', ')}:

${tableOf(tables.open)}

## Operators' routes

${tableOf(tables.operators)}

## Internal methods

All need a service token or a workspace session with the scope that is named. The gateway's \`/rpc\` passes on the ones that operators may call, with a
workspace session only. \`visitors:act\` is the gateways' own and \`deliveries:work\` the delivery workers': no workspace session holds them,
whatever it claims.

${tableOf(tables.methods)}
`
}

/** Columns are parties; those of which every cell is the same are told in a sentence. */
function tableOf(rows: Map<string, Row>): string {
  const parties = [...new Set([...rows.values()].flatMap(Object.keys))]
  const cells = (party: string) => [...rows.values()].map((row) => row[party] ?? '–')
  const uniform = parties.filter((party) => new Set(cells(party)).size === 1)
  const shown = parties.filter((party) => !uniform.includes(party))
  const sentences = uniform.map((party) => `- ${party}: ${codeOf(cells(party)[0]!)}, everywhere`)
  const table = [
    `| | ${shown.join(' | ')} |`,
    `|---${'|---'.repeat(shown.length)}|`,
    ...[...rows].map(
      ([name, row]) => `| \`${name}\` | ${shown.map((party) => codeOf(row[party] ?? '–')).join(' | ')} |`,
    ),
  ]
  return [
    ...sentences,
    ...(sentences.length > 0 && shown.length > 0 ? [''] : []),
    ...(shown.length > 0 ? table : []),
  ].join('\n')
}

const codeOf = (cell: string) => (cell === '–' || cell === 'answered' ? cell : `\`${cell}\``)

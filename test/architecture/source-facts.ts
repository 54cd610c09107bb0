import { parseSync, Visitor } from 'vite'

export type SourceFacts = {
  /** Modules that the file names in static or dynamic imports, re-exports, `require` calls or import types. */
  imports: string[]
  readsEnvironment: boolean
  touchesDocument: boolean
}

/**
 * Returns which modules a file imports, and whether it uses the environment or `document`. Reads
 * the syntax tree, so that comments and strings do not count.
 *
 * @throws when the file is not valid TypeScript or JavaScript
 */
export const sourceFacts = (path: string, source: string): SourceFacts => {
  const { program, errors } = parseSync(path, source)
  if (errors[0]) throw new Error(`${path}: ${errors[0].message}`)
  const facts: SourceFacts = { imports: [], readsEnvironment: false, touchesDocument: false }
  const named = (node: { type: string; value?: unknown } | null | undefined) => {
    if (node?.type === 'Literal' && typeof node.value === 'string') facts.imports.push(node.value)
  }
  const identifiers = new Set<object>()
  const names = new Set<object>()

  new Visitor({
    ImportDeclaration(node) {
      named(node.source)
      if (!/^(node:)?process$/.test(node.source.value)) return
      for (const specifier of node.specifiers) {
        if (specifier.type === 'ImportSpecifier' && nameOf(specifier.imported) === 'env') facts.readsEnvironment = true
      }
    },
    ExportNamedDeclaration: (node) => named(node.source),
    ExportAllDeclaration: (node) => named(node.source),
    ImportExpression: (node) => named(node.source),
    TSImportType: (node) => named(node.source),
    TSExternalModuleReference: (node) => named(node.expression),
    CallExpression(node) {
      if (nameOf(node.callee) === 'require') named(node.arguments[0])
    },
    MemberExpression(node) {
      const [object, property] = [nameOf(node.object), nameOf(node.property)]
      if (!node.computed) names.add(node.property)
      if (object === 'process' && property === 'env') facts.readsEnvironment = true
      if (/^(window|globalThis|self)$/.test(object ?? '') && property === 'document') facts.touchesDocument = true
    },
    VariableDeclarator(node) {
      if (node.id.type !== 'ObjectPattern' || nameOf(node.init) !== 'process') return
      for (const entry of node.id.properties) {
        if (entry.type === 'Property' && nameOf(entry.key) === 'env') facts.readsEnvironment = true
      }
    },
    Property(node) {
      if (!node.computed && !node.shorthand) names.add(node.key)
    },
    TSPropertySignature: (node) => void names.add(node.key),
    Identifier(node) {
      if (node.name === 'document') identifiers.add(node)
    },
  }).visit(program)

  // Identifiers are checked after the whole tree was visited. Only then are all property names known.
  for (const identifier of identifiers) if (!names.has(identifier)) facts.touchesDocument = true
  return facts
}

/**
 * Returns the last name in an expression: `env` for `process.env` and `process['env']`. Undefined
 * if there is no name.
 */
const nameOf = (node: object | null | undefined): string | undefined => {
  const at = node as { type?: string; name?: string; value?: unknown; property?: object } | null | undefined
  if (at?.type === 'Identifier') return at.name
  if (at?.type === 'Literal' && typeof at.value === 'string') return at.value
  if (at?.type === 'MemberExpression') return nameOf(at.property)
  return undefined
}

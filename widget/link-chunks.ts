import { createHash } from 'node:crypto'

/** Returns the value of an attribute `integrity`. */
export const integrityOf = (content: string | Buffer) =>
  `sha256-${createHash('sha256').update(content).digest('base64')}`

/** A list of a module's imports or exports, such as `a as b,c`. */
const specifiers = String.raw`\{([^}]*)\}`
const chunkImport = new RegExp(String.raw`import${specifiers}from["'\`]\./chat\.js["'\`];`)
const moduleExport = new RegExp(String.raw`export${specifiers};?\s*$`)
const laterImport = /\(\)=>import\(["'`]\.\/([\w-]+)\.js["'`]\)/g

/**
 * Links the built chat and the chunks that it loads later, so that the browser checks all of them.
 * A module's own imports would be fetched without a check. So a chunk has no imports: it exports a
 * function that gets the code of the chat and returns what the chunk exported. The chat passes its
 * code to this function, and knows the hash of each chunk.
 *
 * @param built files of the chat's build by name
 */
export function linkChunks(built: ReadonlyMap<string, string>): Map<string, string> {
  const linked = new Map<string, string>()
  for (const [name, code] of built) if (name !== 'chat.js') linked.set(name, linkedChunk(name, code))
  const chat = built.get('chat.js')!
  const [exported, list] = moduleExport.exec(chat)!
  const named = chat.slice(0, -exported.length).replace(laterImport, (_import, name) => JSON.stringify(name))
  requireNoImports('chat.js', named)
  const hashes = [...linked].map(([name, code]) => [name.slice(0, -'.js'.length), integrityOf(code)] as const)
  const shared = pairsOf(list!).filter(([, outside]) => outside !== 'createWidget')
  const [createWidget] = pairsOf(list!).find(([, outside]) => outside === 'createWidget')!
  // Declare the constants outside of all functions. In a function, a minified local variable could
  // have the same name as one of the chat's variables.
  const constants = `const CHUNK_INTEGRITY=${JSON.stringify(Object.fromEntries(hashes))},CHAT_CODE=${objectOf(shared)}`
  linked.set('chat.js', `${named};${constants};export{${createWidget} as createWidget};\n`)
  return linked
}

/** Turns `…import{a as b}from"./chat.js";export{c as d}` into `export default({a:b})=>{…return{d:c}}`. */
function linkedChunk(name: string, code: string): string {
  const [imported = '', list = ''] = chunkImport.exec(code) ?? []
  const [exported, exports] = moduleExport.exec(code)!
  const body = code.slice(0, -exported.length).replace(imported, '')
  requireNoImports(name, body)
  const parameters = pairsOf(list).map(([outside, local]) => `${outside}:${local}`)
  return `export default({${parameters}})=>{${body}return${objectOf(pairsOf(exports!))}};\n`
}

function requireNoImports(name: string, code: string): void {
  if (/\b(import\s*["'`{*]|import\(["'`]|export\s*[{*])/.test(code))
    throw new Error(`${name}: an import or export was not linked`)
}

/** Splits `a as b,c` into `[['a', 'b'], ['c', 'c']]`. */
const pairsOf = (list: string): [string, string][] =>
  list.split(',').flatMap((each): [string, string][] => {
    const [first = '', second = first] = each.trim().split(' as ')
    return first === '' ? [] : [[first, second]]
  })

const objectOf = (pairs: [string, string][]) => `{${pairs.map(([local, outside]) => `${outside}:${local}`)}}`

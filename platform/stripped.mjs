// Preloaded with `--import`: loads the product's files from copies without types, which `npm run build` writes.
// Node's own stripper would take 25 MB of memory. It is used only for files that have changed since the build.
import { createHash } from 'node:crypto'
import { globSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { registerHooks, stripTypeScriptTypes } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

const root = join(import.meta.dirname, '..')
const copies = join(root, '.cache/stripped')
const copyOf = (source) => join(copies, createHash('sha256').update(process.version).update(source).digest('hex'))

if (process.argv[1] === import.meta.filename) {
  mkdirSync(copies, { recursive: true })
  const files = globSync('{admin,contract,core,core-client,delivery,gateway,platform,serve}/**/!(*.test).ts', {
    cwd: root,
  })
  for (const file of files) {
    const source = readFileSync(join(root, file), 'utf8')
    writeFileSync(copyOf(source), stripTypeScriptTypes(source))
  }
} else {
  const product = `${pathToFileURL(root)}/`
  registerHooks({
    load(url, context, next) {
      if (!url.endsWith('.ts') || !url.startsWith(product)) return next(url, context)
      try {
        const source = readFileSync(copyOf(readFileSync(new URL(url), 'utf8')), 'utf8')
        return { format: 'module', source, shortCircuit: true }
      } catch {
        return next(url, context)
      }
    },
  })
}

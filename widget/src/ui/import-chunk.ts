import { preloadModule } from './preload-module.ts'

/** Hashes of the chunks that the chat loads later, by name. The build sets this constant. */
declare const CHUNK_INTEGRITY: Record<string, string>

/** Code of the chat that chunks use. The build sets this constant. */
declare const CHAT_CODE: object

/** Query of each chunk's URL. Some browsers never load a module again if its first load failed. */
const queries: Record<string, string> = {}

const chunks: Record<string, Promise<unknown> | undefined> = {}

/**
 * Imports a chunk if its content matches the hash that the build wrote into the chat. The build
 * replaces each `import()` of the chat by a call of this function. A chunk exports a function
 * that gets the chat's code. So a chunk needs no imports, whose content the browser would not check.
 */
export function importChunk(name: string): Promise<unknown> {
  chunks[name] ??= fetchChunk(name).catch((error) => {
    chunks[name] = undefined
    queries[name] = `${queries[name] ?? ''}?`
    throw error
  })
  return chunks[name]
}

async function fetchChunk(name: string): Promise<unknown> {
  const { href } = new URL(`${name}.js${queries[name] ?? ''}`, import.meta.url)
  await preloadModule(href, CHUNK_INTEGRITY[name]!)
  const { default: link } = (await import(/* @vite-ignore */ href)) as { default: (code: object) => unknown }
  return link(CHAT_CODE)
}

import { fileURLToPath } from 'node:url'
import { minify } from 'terser'
import type { InlineConfig, Plugin } from 'vite'

const root = fileURLToPath(new URL('.', import.meta.url))

interface Output {
  /** Names of the files made, and the source each begins with. */
  input: Record<string, string>
  entryFileNames: string
  chunkFileNames: string
  format?: 'es' | 'iife'
  chunks?: ReturnType<typeof oneFile>
  /**
   * `strict`: an entry exports what its source exports. `allow-extension`: it also exports what chunks import from it, under short
   * names, so that it stays one file.
   */
  signatures?: 'strict' | 'allow-extension'
  define?: Record<string, string>
}

/** Puts the code that is always needed into one file. */
const oneFile = (name: string, test: RegExp) => ({ codeSplitting: { groups: [{ name, test }] } })

/**
 * Before the bundler minifies: terser finds another 1 % in what the two make of it. Vite's own setting for it leaves libraries of
 * ES modules alone.
 */
const minifiedTwice: Plugin = {
  name: 'minified-twice',
  async renderChunk(code, _chunk, { format }) {
    // `unsafe_arrows` is unsafe for methods that are called with `new`, which none here is; those with a `this` it leaves alone.
    const { code: smaller } = await minify(code, {
      module: format === 'es',
      ecma: 2022,
      compress: { passes: 2, unsafe_arrows: true, hoist_funs: true },
      mangle: false,
    })
    return { code: smaller!, map: null }
  },
}

function outputOf({ input, define, format = 'es', chunks, signatures = 'strict', ...names }: Output): InlineConfig {
  return {
    root,
    configFile: false,
    logLevel: 'warn',
    publicDir: false,
    base: './',
    define,
    plugins: [minifiedTwice],
    build: {
      target: 'es2022',
      cssTarget: ['chrome123', 'safari17.5', 'firefox120'],
      emptyOutDir: false,
      minify: true,
      modulePreload: false,
      reportCompressedSize: false,
      // As a library: else each `import()` goes through a helper that looks for style sheets in the page's document.
      ...(format === 'es' && { lib: { entry: input, formats: [format] } }),
      rolldownOptions: {
        input,
        checks: { pluginTimings: false },
        preserveEntrySignatures: signatures,
        // Notes to a bundler are of no use inside functions, and there is nothing else to note.
        output: { ...names, ...chunks, format, minify: true, comments: { annotation: false } },
      },
    },
  }
}

/** The package's entries export the documented names only. The code that they share is in chunks. */
export const packageBuild = outputOf({
  input: { index: 'src/index.ts', client: 'src/client-entry.ts' },
  entryFileNames: '[name].js',
  chunkFileNames: 'chunks/[name].js',
  chunks: oneFile('core', /src\/(client|client-entry|pause|backoff|errors)\.ts$/),
})

/** The chat of the script tag. Named by its content, so that it can be cached for ever. */
export const chatBuild = outputOf({
  input: { chat: 'src/ui/chat.ts' },
  entryFileNames: 'widget/[name]-[hash].js',
  chunkFileNames: 'widget/[name]-[hash].js',
  signatures: 'allow-extension',
})

/**
 * `widget.js`: a classic script, since only such a one knows its own element.
 *
 * @param chatModule address of the chat, relative to `widget.js`
 */
export const loaderBuild = (chatModule: string) =>
  outputOf({
    input: { widget: 'src/ui/loader.ts' },
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
    format: 'iife',
    define: { CHAT_MODULE: JSON.stringify(chatModule) },
  })

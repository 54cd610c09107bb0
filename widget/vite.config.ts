import { fileURLToPath } from 'node:url'
import { minify } from 'terser'
import type { InlineConfig, Plugin } from 'vite'

const root = fileURLToPath(new URL('.', import.meta.url))

interface Output {
  /** Paths of the entry files, by name of the output file. */
  input: Record<string, string>
  entryFileNames: string
  chunkFileNames: string
  format?: 'es' | 'iife'
  chunks?: ReturnType<typeof oneFile>
  /**
   * Controls the exports of the built entry files. `strict`: an entry file has only the exports of
   * its source file. `allow-extension`: the build may add exports that other chunks import, which
   * avoids an extra file.
   */
  signatures?: 'strict' | 'allow-extension'
  define?: Record<string, string>
}

/** Returns the option that bundles all modules whose path matches `test` into one file. */
const oneFile = (name: string, test: RegExp) => ({ codeSplitting: { groups: [{ name, test }] } })

/**
 * Plugin that minifies the output again with Terser, which makes it 1 % smaller. Vite's own Terser
 * setting does not minify ES module libraries.
 */
const minifiedTwice: Plugin = {
  name: 'minified-twice',
  async renderChunk(code, _chunk, { format }) {
    // `unsafe_arrows` turns some functions into arrow functions, which cannot be called with `new`.
    // This package does not call these functions with `new`.
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
      // Build ES modules as a library. Otherwise, Vite wraps `import()` in a helper that searches
      // the page for style sheets.
      ...(format === 'es' && { lib: { entry: input, formats: [format] } }),
      rolldownOptions: {
        input,
        checks: { pluginTimings: false },
        preserveEntrySignatures: signatures,
        // Minification keeps annotation comments inside functions unless `annotation` is false.
        output: { ...names, ...chunks, format, minify: true, comments: { annotation: false } },
      },
    },
  }
}

/** Build of the npm package. Its entry files export only the documented names and share chunks. */
export const packageBuild = outputOf({
  input: { index: 'src/index.ts', client: 'src/client-entry.ts' },
  entryFileNames: '[name].js',
  chunkFileNames: 'chunks/[name].js',
  chunks: oneFile('core', /src\/(client|client-entry|pause|backoff|errors)\.ts$/),
})

/**
 * Build of the chat that `widget.js` loads. The file name contains a content hash, so browsers can
 * cache the file forever.
 */
export const chatBuild = outputOf({
  input: { chat: 'src/ui/widget.ts' },
  entryFileNames: 'widget/[name]-[hash].js',
  chunkFileNames: 'widget/[name]-[hash].js',
  signatures: 'allow-extension',
})

/**
 * Returns the build of `widget.js`. `widget.js` is a classic script, because modules cannot access
 * their own script element.
 *
 * @param chatModule URL of the chat, relative to `widget.js`
 */
export const loaderBuild = (chatModule: string) =>
  outputOf({
    input: { widget: 'src/ui/loader.ts' },
    entryFileNames: '[name].js',
    chunkFileNames: '[name].js',
    format: 'iife',
    define: { CHAT_MODULE: JSON.stringify(chatModule) },
  })

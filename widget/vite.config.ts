import { fileURLToPath } from 'node:url'
import { defineConfig, type InlineConfig } from 'vite'

const root = fileURLToPath(new URL('.', import.meta.url))

const base: InlineConfig = {
  root,
  configFile: false,
  logLevel: 'warn',
  publicDir: false,
}

/** `service-widget.js`: the package, an ES module. */
export const packageBuild: InlineConfig = {
  ...base,
  build: {
    target: 'es2022',
    emptyOutDir: false,
    lib: { entry: 'src/index.ts', formats: ['es'], fileName: () => 'service-widget.js' },
    minify: true,
    reportCompressedSize: false,
    rolldownOptions: { output: { codeSplitting: false } },
  },
}

/** `widget.js`: the same, starting itself from a script element. */
export const scriptTagBuild: InlineConfig = {
  ...base,
  build: {
    target: 'es2022',
    emptyOutDir: false,
    lib: { entry: 'src/ui/script-tag.ts', formats: ['iife'], name: 'ServiceWidgetScript', fileName: () => 'widget.js' },
    minify: true,
    reportCompressedSize: false,
    rolldownOptions: { output: { codeSplitting: false } },
  },
}

export default defineConfig(packageBuild)

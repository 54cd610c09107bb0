import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, it } from 'vitest'

const root = join(import.meta.dirname, '../..')
const read = (path: string) => readFile(join(root, path), 'utf8')

it.each([
  ['vue', 'vue/src/Chat.vue'],
  ['svelte', 'svelte/src/Chat.svelte'],
  ['jsx', 'next/app/page.jsx'],
])('the %s recipe of docs/recipes.md is the code of the project that is built from it', async (language, file) => {
  const [, code] = new RegExp(`\`\`\`${language}\\n([\\s\\S]*?)\`\`\``).exec(await read('docs/recipes.md'))!
  expect(code).toBe(await read(`test/packages/fixtures/${file}`))
})

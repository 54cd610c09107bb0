import { defineSettings, filledText, port } from '../platform/settings/settings.ts'

/** Settings of `npm start`, `npm run core`, `npm run migrate` and `npm run make -- token`. */
export const devSettings = defineSettings({
  DATA_DIR: filledText(
    '.data',
    'Folder of generated secrets, and of the embedded engine, which runs if MONGODB_URI is empty.',
  ),
  NODE_ENV: filledText('development', 'With `production`, `npm run core` generates no secrets and creates no demo.'),
  DEMO_PORT: port(8081, 'Port of the demo shop.'),
})

export type DevConfig = ReturnType<typeof devSettings.read>

/** Reads the settings. Errors: `SettingError`. */
export const readDevConfig = (env: NodeJS.ProcessEnv = process.env): DevConfig => devSettings.read(env)

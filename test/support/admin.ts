import { runAdmin } from '../../admin/run-admin.ts'

export interface CommandResult {
  code: number
  stdout: string
  stderr: string
}

/** Runs the administration command in this process. That is faster than to start a process. */
export async function adminHere(args: string[], env: Record<string, string>): Promise<CommandResult> {
  let [stdout, stderr] = ['', '']
  const code = await runAdmin({
    args,
    env,
    print(text) {
      stdout += `${text}\n`
    },
    printError(text) {
      stderr += `${text}\n`
    },
  })
  return { code, stdout, stderr }
}

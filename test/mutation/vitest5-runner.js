import { commonTokens, declareFactoryPlugin, PluginKind } from '@stryker-mutator/api/plugin'
import { TestStatus } from '@stryker-mutator/api/test-runner'
import { strykerPlugins as vitestPlugins } from '@stryker-mutator/vitest-runner'

/** Stryker's Vitest runner (9.6) with fixes for two bugs that hide surviving mutants. */
function createRunner(injector) {
  const runner = vitestPlugins[0].factory(injector)
  const { init, run } = runner

  // The runner selects the tests of a mutant by name. It joins describe title and test name with a
  // space, but Vitest 5 joins them with ` > `.
  runner.init = async () => {
    await init.call(runner)
    for (const { config } of runner.ctx.projects) {
      let pattern
      Object.defineProperty(config, 'testNamePattern', {
        get: () => pattern,
        set(wanted) {
          pattern = wanted && new RegExp(wanted.source.replaceAll(' ', '(?: > | )'))
        },
      })
    }
  }

  // If a mutant prevents a test file from loading, Vitest reports no failed test. This reports the
  // file as a failed test, so that Stryker counts the mutant as detected.
  runner.run = async (options) => {
    const result = await run.call(runner, options)
    for (const file of runner.ctx.state.getFiles()) {
      if (result.tests === undefined || file.result?.state !== 'fail' || file.tasks.length > 0) continue
      const failureMessage = file.result.errors?.[0]?.message ?? 'the file cannot be loaded'
      result.tests.push({ id: file.id, name: file.name, timeSpentMs: 0, status: TestStatus.Failed, failureMessage })
    }
    return result
  }
  return runner
}
createRunner.inject = [commonTokens.injector]

export const strykerPlugins = [declareFactoryPlugin(PluginKind.TestRunner, 'vitest5', createRunner)]

// Ends the process if the version of Node is too old. Each npm script preloads this file. A `pre`
// script would not work, because npm skips `pre` scripts if `ignore-scripts` is set.
// This file must run on any Node version, so it uses old JavaScript only.
// The npm package `node` installs Node 24 and puts it on the PATH of npm scripts.
'use strict'

const needed = 24
const found = Number(process.versions.node.split('.')[0])

if (found < needed) {
  console.error(
    [
      `This project requires Node ${needed}; this is Node ${process.versions.node}.`,
      'The npm package "node" provides it, but npm did not run the install script of that package.',
      'Run it, then try again:',
      '',
      '    npm rebuild node --ignore-scripts=false',
      '',
      `Or install Node ${needed} yourself.`,
    ].join('\n'),
  )
  process.exit(1)
}

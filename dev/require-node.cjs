// Loaded before each npm script's own program, not as a script before it, which npm leaves out under ignore-scripts.
// Runs on whatever Node the host has, so it keeps to plain old JavaScript.
// The project's own Node 24 comes from the npm package `node`, whose install script puts it on the PATH of npm scripts.
'use strict'

const needed = 24
const found = Number(process.versions.node.split('.')[0])

if (found < needed) {
  console.error(
    [
      'Service runs on Node ' + needed + ', and this is Node ' + process.versions.node + '.',
      'It brings its own Node as the npm package "node", but npm was kept from running that package\'s install script.',
      'Let it run, then try again:',
      '',
      '    npm rebuild node --ignore-scripts=false',
      '',
      'or use a Node ' + needed + ' of your own.',
    ].join('\n'),
  )
  process.exit(1)
}

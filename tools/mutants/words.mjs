/**
 * Leaves text for people alone: what has a space in it is a message or a part of one. Tests hold the names and numbers that messages carry, which are
 * mutants of their own; its prose is free to change.
 */
import { declareValuePlugin, PluginKind } from '@stryker-mutator/api/plugin';

export const strykerPlugins = [
  declareValuePlugin(PluginKind.Ignore, 'words', {
    shouldIgnore(path) {
      const text = path.isStringLiteral() ? path.node.value : path.isTemplateLiteral() ? path.node.quasis.map(({ value }) => value.raw).join('') : '';
      return text.includes(' ') ? 'words for people' : undefined;
    },
  }),
];

import { describe, expect, it } from 'vitest';
import { matrixText, MatrixTextError, parseMatrixText } from '../src/formats/matrix_text.ts';
import { shortestFloat32 } from '../src/formats/numbers.ts';

describe('parsing arrays from text', () => {
  it('reads rows in JSON and Python notation', () => {
    expect(parseMatrixText('[[1, -2.5],\n [3e2, .5]]')).toEqual({ data: Float32Array.of(1, -2.5, 300, 0.5), dims: [2, 2] });
    expect(parseMatrixText('[[True, false], [Infinity, -inf]]').data).toEqual(Float32Array.of(1, 0, Infinity, -Infinity));
    expect(parseMatrixText('[[nan, NaN]]').data).toEqual(Float32Array.of(NaN, NaN));
  });

  it('reads nested lists up to rank 4, and single lists if rank 1 is allowed', () => {
    expect(parseMatrixText('[[[1, 2], [3, 4], [5, 6]]]').dims).toEqual([1, 3, 2]);
    expect(parseMatrixText('[[[[1]]], [[[2]]]]').dims).toEqual([2, 1, 1, 1]);
    expect(parseMatrixText('[1, 0]', 1).dims).toEqual([2]);
  });

  it.each([
    ['', 'empty'],
    ['   ', 'empty'],
    ['5', 'single number'],
    ['[1, 2]', 'write [[1, 2]]'],
    ['[[1, 2], [3]]', 'Row 2 has 1 number, but the rows before have 2'],
    ['[[[1], [2]], [[3]]]', 'Row 2 has 1 row'],
    ['[[1, [2]]]', 'Some entries are lists'],
    ['[[1], 2]', 'Some entries are lists'],
    ['[[1, 2 3]]', 'comma is missing: line 1, column 8'],
    ['[[1 2 ... 9]]', 'omits numbers'],
    ['[[1],\n [x]]', 'line 2, column 3'],
    ['[[1,]]', 'after the last comma'],
    ['[[,1]]', 'A number is missing'],
    ['[[]]', 'empty list'],
    ['[[1]', 'closing bracket is missing: 1 list'],
    ['[[1]]]', 'after the closing bracket'],
    [']', 'extra closing bracket'],
    ['[[1e39]]', 'too large for float32'],
    ['[["1"]]', 'not an array of numbers'],
    ['[[1]] [[2]]', 'after the closing bracket'],
    ['[[[[[1]]]]]', 'more than four deep'],
    ['[[12abc]]', 'not an array of numbers'],
  ])('rejects %j with the cause and the position', (text, message) => {
    expect(() => parseMatrixText(text)).toThrow(MatrixTextError);
    expect(() => parseMatrixText(text)).toThrow(message);
  });

  it.each([
    ['NumPy output', '[[ 1.   -2.5 ]\n [ 3.e+02  0.5]]'],
    ['the repr of a NumPy array', 'array([[ 1. , -2.5],\n       [ 3e2,  0.5]], dtype=float32)'],
    ['a NumPy array in a program', 'w = np.array([[1, -2.5], [300, .5]])'],
    ['PyTorch output', 'tensor([[   1.0000,   -2.5000],\n        [ 300.0000,    0.5000]])'],
    ['a PyTorch tensor on another device', "tensor([[1., -2.5], [300., 0.5]], device='cuda:0', dtype=torch.float16, grad_fn=<MmBackward0>)"],
    ['a PyTorch parameter', 'Parameter containing:\ntensor([[1., -2.5],\n        [300., 0.5]], requires_grad=True)'],
    ['CSV', '1,-2.5\r\n300,0.5\r\n'],
    ['CSV with row and column names', '"query \\ key","a, b","c"\n"a, b",1,-2.5\n"c",300,0.5\n'],
    ['CSV with column names', 'a,b\n1,-2.5\n300,0.5'],
    ['spreadsheet cells with decimal commas', '1\t-2,5\n300\t0,5'],
    ['semicolon-separated numbers with decimal commas', '1;-2,5\n300;0,5'],
    ['numbers separated by spaces', ' 1 -2.5\n 3e2  .5'],
  ])('reads %s', (_, text) => expect(parseMatrixText(text)).toEqual({ data: Float32Array.of(1, -2.5, 300, 0.5), dims: [2, 2] }));
  it('reads printed arrays of higher rank, and of rank 1 if that is allowed', () => {
    expect(parseMatrixText('[[[1 2]\n  [3 4]]\n\n [[5 6]\n  [7 8]]]').dims).toEqual([2, 2, 2]);
    expect(parseMatrixText('1 0 1', 1)).toEqual({ data: Float32Array.of(1, 0, 1), dims: [3] });
    expect(parseMatrixText('[True False]', 1).data).toEqual(Float32Array.of(1, 0));
    expect(parseMatrixText('1, 2').dims).toEqual([1, 2]);
  });

  it('takes linear time, so that a megabyte is read within seconds', () => {
    const text = JSON.stringify(Array.from({ length: 500 }, (_, i) => Array.from({ length: 500 }, (_, j) => i + j / 8)));
    const start = performance.now();
    expect(parseMatrixText(text).dims).toEqual([500, 500]);
    for (const other of [text.replaceAll(',', ' '), text.replaceAll('],[', '\n').replaceAll(/[[\]]/g, ''), `tensor(${text})`, `tensor(${text}`])
      expect(() => parseMatrixText(other)).not.toThrow(RangeError);
    expect(performance.now() - start).toBeLessThan(5000);
  });

  it('restores formatted arrays bit for bit', () => {
    const data = Float32Array.of(0.1, 1 / 3, -1e-38, 16777216, 3.4e38, 1e-45, -0.25, 7);
    const tensor = { data, dims: [2, 2, 2] };
    expect(parseMatrixText(matrixText(tensor, shortestFloat32))).toEqual(tensor);
    expect(matrixText({ data: Float32Array.of(0.1, 0.2), dims: [1, 2] }, shortestFloat32)).toBe('[[0.1, 0.2]]');
  });
});

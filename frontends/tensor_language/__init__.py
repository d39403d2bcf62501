"""The tensor language: kernels on memrefs, groups and cooperative matrices, turned into TLX IR.

    func @scale(%alpha: f32, %A: memref<f32x?x?>) {
        %one = constant 0.0 : f32
        axpby %alpha, %A, %one, %A
    }

Two versions of the language have a parser each and one syntax tree (`ast`) behind them; `check` finds what breaks a
rule; `emit` writes TLX IR.
"""

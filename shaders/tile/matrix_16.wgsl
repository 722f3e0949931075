// Cooperative matrices of 16 x 16: f16 in, f32 out.

alias MatrixA = coop_mat16x16<f16, A>;
alias MatrixB = coop_mat16x16<f16, B>;
alias MatrixC = coop_mat16x16<f32, C>;

const MATRIX = 16u;
